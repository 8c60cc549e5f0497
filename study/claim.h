#pragma once
// Claims on the runs of a study, so that any number of processes on one shared folder never do the same run twice.
#include <optional>
#include <string>

namespace cloze {

/// A process that works on a run.
struct Owner {
  std::string host;
  int64_t pid = 0;
};

/// A lock on a file that names its owner. The system gives it up when the last process that holds it ends, however it
/// ends, so that a dead owner's claim is free; a shared folder has to support flock(2). The file stays.
class Claim {
 public:
  /// The claim, or none where another process holds it. Throws Error with the system's reason.
  static std::optional<Claim> take(const std::string& path);
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim();
  /// The descriptor that holds the claim; a process that inherits it holds the claim too.
  int descriptor() const { return file_; }

 private:
  explicit Claim(int file) : file_(file) {}
  int file_ = -1;
};

/// Who holds a claim; none where it is free.
std::optional<Owner> owner_of(const std::string& path);

}  // namespace cloze
