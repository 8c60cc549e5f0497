#pragma once
// Locks on files, so that two processes never work on one run, one token store or one run of a study.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace cloze {

/// A process that holds a lock.
struct Owner {
  std::string host;
  int64_t pid = 0;
};

/// `process 4242 on HOST`; `another process` where its pid is not known.
std::string to_text(const Owner& owner);

/// What becomes of the file of a lock that is given up. It has to stay where other processes inherit the lock.
enum class LockFile { stays, goes };

/// A lock on a file that names its owner. The system gives it up when the last process that holds it ends, however it
/// ends, so that the lock of a dead owner is free; the file system has to support flock(2).
class Lock {
 public:
  /// The lock, or none where another process holds it. Throws Error with the system's reason.
  static std::optional<Lock> take(const std::string& path, LockFile file = LockFile::stays);
  /// The lock of a process that works on `what`, whose file goes. Throws Error that names the process that holds it.
  static Lock take_or_fail(const std::string& path, const std::string& what);
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();
  /// The descriptor that holds the lock; a process that inherits it holds the lock too.
  int descriptor() const { return file_; }

 private:
  Lock(int file, std::string removed_path) : file_(file), removed_path_(std::move(removed_path)) {}
  int file_ = -1;
  std::string removed_path_;  // empty: the file stays
};

/// Who holds a lock; none where it is free.
std::optional<Owner> owner_of(const std::string& path);

}  // namespace cloze
