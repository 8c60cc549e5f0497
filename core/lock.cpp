#include "core/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string this_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

int open_lock(const std::string& path) {
  const int file = open_own(path, O_RDWR, 0644);
  require<Error>(file >= 0, path, ": cannot be opened (", system_reason(), ")");
  return file;
}

/// False where another process holds the lock.
bool lock(int file, const std::string& path) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  const bool held = errno == EWOULDBLOCK;
  const auto reason = system_reason();
  if (!held) close(file);
  require<Error>(held, path, ": cannot be locked (", reason, "); use a file system with file locks");
  return false;
}

/// The locked file; -1 where another process holds the lock.
int open_locked(const std::string& path) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (attempt > 0) usleep(1000);  // `owner_of` holds it for some microseconds
    const int file = open_lock(path);
    if (lock(file, path) && is_file_at(file, path)) return file;
    close(file);
  }
  return -1;
}

}  // namespace

std::string to_text(const Owner& owner) {
  return owner.pid == 0 ? "another process" : concat("process ", owner.pid, " on ", owner.host);
}

std::optional<Lock> Lock::take(const std::string& path, LockFile left) {
  const int file = open_locked(path);
  if (file < 0) return std::nullopt;
  const auto text = json_text(json{{"host", this_host()}, {"pid", getpid()}}) + "\n";
  const bool complete =
      ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  const auto reason = system_reason();
  if (!complete) close(file);
  require<Error>(complete, path, ": cannot be written (", reason, ")");
  return Lock(file, left == LockFile::goes ? path : "");
}

Lock Lock::take_or_fail(const std::string& path, const std::string& what) {
  if (auto lock = take(path, LockFile::goes)) return std::move(*lock);
  const auto owner = owner_of(path);
  fail<Error>(what, ": ", to_text(owner.value_or(Owner{})), " works on it; wait for its end, or stop it");
}

std::optional<Owner> owner_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a reader may not be allowed to write
  if (file < 0) return std::nullopt;
  const bool is_free = flock(file, LOCK_SH | LOCK_NB) == 0;
  char text[1024];
  const ssize_t length = pread(file, text, sizeof text, 0);
  close(file);
  if (is_free) return std::nullopt;
  const auto fields = parse_json({text, static_cast<size_t>(std::max<ssize_t>(length, 0))});
  const bool complete = fields.is_object() && fields.contains("host") && fields["host"].is_string() &&
                        fields.contains("pid") && fields["pid"].is_number_integer();
  if (!complete) return Owner{"?", 0};  // it is being written
  return Owner{fields["host"].get<std::string>(), fields["pid"].get<int64_t>()};
}

Lock::Lock(Lock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), removed_path_(std::exchange(other.removed_path_, {})) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(removed_path_, other.removed_path_);
  return *this;
}

Lock::~Lock() {
  if (file_ < 0) return;
  // While it is held, and only where the folder has not been replaced by that of another process.
  if (!removed_path_.empty() && is_file_at(file_, removed_path_)) unlink(removed_path_.c_str());
  close(file_);
}

}  // namespace cloze
