#include "core/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

namespace {

void require_own(const struct stat& info, const std::string& path) {
  require<Error>(!S_ISLNK(info.st_mode), path,
                 ": is a link, through which another file would be changed; put a file of its own there");
  require<Error>(S_ISREG(info.st_mode), path, ": is not a regular file; remove it");
}

}  // namespace

bool is_file_at(int file, const std::string& path) {
  struct stat open_file{}, there{};
  return fstat(file, &open_file) == 0 && stat(path.c_str(), &there) == 0 && open_file.st_dev == there.st_dev &&
         open_file.st_ino == there.st_ino;
}

bool is_of_this_user(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && info.st_uid == geteuid();
}

void require_own_file(const std::string& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) == 0) require_own(info, path);
}

int open_own(const std::string& path, int flags, unsigned mode) {
  require_own_file(path);
  const auto open_it = [&] {  // without waiting for the reader of a pipe that replaced the file
    return open(path.c_str(), (flags & ~O_TRUNC) | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  };
  int file = open_it();
  struct stat info{};
  if (file >= 0 && fstat(file, &info) == 0 && info.st_nlink > 1) {
    close(file);
    write_atomic(path, (flags & O_TRUNC) != 0 ? "" : read_text(path));
    file = open_it();
  }
  if (file < 0) {
    const int reason = errno;
    require_own_file(path);
    errno = reason;
    return -1;
  }
  const bool is_own = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  if (!is_own || ((flags & O_TRUNC) != 0 && ftruncate(file, 0) != 0)) {
    const int reason = errno;
    close(file);
    if (!is_own) require_own(info, path);
    errno = reason;
    return -1;
  }
  return file;
}

int open_to_read(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);  // who has a pipe open is waited for
  return file;
}

std::FILE* open_own(const std::string& path, const char* mode) {
  const std::string_view letters = mode;
  const int access = letters.find('+') == letters.npos ? O_WRONLY : O_RDWR;
  const int file = open_own(path, access | (letters.starts_with('a') ? O_APPEND : O_TRUNC));
  return file < 0 ? nullptr : fdopen(file, mode);
}

}  // namespace cloze
