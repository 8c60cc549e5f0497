#include "study/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string this_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

int open_lock(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  require<Error>(file >= 0, path, ": cannot be opened (", system_reason(), ")");
  return file;
}

/// False where another process holds the lock.
bool lock(int file, const std::string& path) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  const bool held = errno == EWOULDBLOCK;
  const auto reason = system_reason();
  if (!held) close(file);
  require<Error>(held, path, ": cannot be locked (", reason, "); keep studies on a file system with file locks");
  return false;
}

}  // namespace

std::optional<Claim> Claim::take(const std::string& path) {
  const int file = open_lock(path);
  for (int attempt = 0; !lock(file, path); ++attempt) {
    if (attempt == 5) {
      close(file);
      return std::nullopt;
    }
    usleep(10'000);  // `owner_of` holds it for a moment
  }
  const auto text = json{{"host", this_host()}, {"pid", getpid()}}.dump() + "\n";
  const bool complete =
      ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  const auto reason = system_reason();
  if (!complete) close(file);
  require<Error>(complete, path, ": cannot be written (", reason, ")");
  return Claim(file);
}

std::optional<Owner> owner_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);  // a reader of a study may not be allowed to write
  if (file < 0) return std::nullopt;
  const bool is_free = flock(file, LOCK_SH | LOCK_NB) == 0;
  close(file);
  if (is_free) return std::nullopt;
  const auto fields = json::parse(read_text(path, 4096), nullptr, false);
  if (!fields.is_object() || !fields.contains("host")) return Owner{"?", 0};  // it is being written
  return Owner{fields.value("host", "?"), fields.value("pid", int64_t{0})};
}

Claim::Claim(Claim&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

Claim::~Claim() {
  if (file_ >= 0) close(file_);
}

}  // namespace cloze
