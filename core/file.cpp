#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/log.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

void sync_path(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

std::string parent_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// The folder, opened and locked by this process; -1 where another one has it, or removed it, or nobody can lock.
int locked_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  if (flock(folder, LOCK_EX | LOCK_NB) == 0 && is_file_at(folder, path)) return folder;
  close(folder);
  return -1;
}

/// Gives what was about to be replaced its name back, or removes it.
void sweep_one(const fs::path& path) {
  std::error_code ignored;
  const auto name = path.filename().string();
  const auto replaced = path.parent_path() / name.substr(0, name.rfind(".tmp-"));
  if (name.ends_with(".old") && !fs::exists(replaced, ignored)) fs::rename(path, replaced, ignored);
  fs::remove_all(path, ignored);
}

constexpr size_t staged_digits = 15;  // more than a date with its time, or an id of a process, has

/// A new file for what is half written next to `path`, locked, which tells processes that sweep that it is written; its
/// descriptor is -1 on an error (errno).
struct StagedFile {
  std::string name{};
  int file = -1;
};
StagedFile create_locked(const std::string& path) {
  constexpr int attempts = 6;
  for (int attempt = 1;; ++attempt) {
    const auto name = staged_name(path);
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 && errno == EEXIST && attempt < attempts) continue;
    if (file < 0) return {name, -1};
    flock(file, LOCK_EX);  // where the file system has no locks, the file is written all the same
    if (attempt == attempts || is_file_at(file, name)) return {name, file};
    close(file);  // a process that sweeps came between the two
  }
}

/// Whether a process writes a file or fills a folder that `open_file` has open.
bool is_in_use(int open_file) {
  return open_file >= 0 && flock(open_file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Removes what no process writes, if it belongs to this user.
void sweep_unused(const fs::path& path) {
  if (!is_of_this_user(path.string())) return;
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (!is_in_use(file)) sweep_one(path);
  if (file >= 0) close(file);  // the lock goes after the file, so that who waits for it writes another one
}

/// Removes the files that killed processes left half written for `path`, by the number of their digits: a user's own
/// file may have another number.
void sweep_files(const std::string& path) {
  const auto beginning = fs::path(path).filename().string() + ".tmp-";
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent_of(path), ignored)) {
    const auto name = entry.path().filename().string();
    if (name.size() == beginning.size() + staged_digits && name.starts_with(beginning) && is_staged(name) &&
        entry.symlink_status(ignored).type() == fs::file_type::regular)
      files.push_back(entry.path());
  }
  for (const auto& one : files) sweep_unused(one);
}

/// A file that is open while it is read; a negative descriptor on an error (errno).
struct FileToRead {
  explicit FileToRead(const std::string& path) : descriptor(open_to_read(path)) {}
  FileToRead(const FileToRead&) = delete;
  FileToRead& operator=(const FileToRead&) = delete;
  ~FileToRead() {
    if (descriptor >= 0) close(descriptor);
  }
  int descriptor;
};

/// Writes everything; false on an error (errno).
bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string system_reason() { return std::strerror(errno); }

std::string read_text(const std::string& path, uint64_t max_bytes) {
  const FileToRead file(path);
  const auto reason = system_reason();
  require(file.descriptor >= 0, path, ": cannot be read (", reason, ")");
  std::string content;
  char block[1 << 16];
  for (ssize_t n; (n = read(file.descriptor, block, sizeof block)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, ": cannot be read (", errno == EISDIR ? "it is a folder" : system_reason(), ")");
    content.append(block, static_cast<size_t>(n));
    require(content.size() <= max_bytes, path, ": longer than ", max_bytes,
            " bytes, which is more than such a file can hold");
  }
  struct stat info{};
  const bool is_idle_pipe = content.empty() && fstat(file.descriptor, &info) == 0 && S_ISFIFO(info.st_mode);
  require(!is_idle_pipe, path, ": cannot be read (it is a pipe to which nothing writes)");
  return content;
}

void sweep_unfinished(const std::string& final_path) {
  auto path = fs::path(final_path).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // what is left of out/ is a sibling of out
  const auto parent = parent_of(path.string()), beginning = path.filename().string() + ".tmp-";
  std::vector<fs::path> unfinished;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const auto name = entry.path().filename().string();
    const bool is_folder = entry.symlink_status(ignored).type() == fs::file_type::directory;
    if (name.starts_with(beginning) && is_staged(name) && is_folder && is_of_this_user(entry.path().string()))
      unfinished.push_back(entry.path());
  }
  std::sort(unfinished.rbegin(), unfinished.rend());  // NAME.tmp-1.old before NAME.tmp-1, whose lock speaks for both
  for (const auto& one : unfinished) {
    const auto filled = one.extension() == ".old" ? one.parent_path() / one.stem() : one;
    const int lock = locked_folder(filled.string());
    if (lock < 0 && fs::exists(filled, ignored)) continue;
    sweep_one(one);
    if (lock >= 0) close(lock);
  }
}

void write_atomic(const std::string& path, std::string_view content) {
  sweep_files(path);
  const auto [temporary, file] = create_locked(path);
  require(file >= 0, path, ": cannot be written (", system_reason(), ")");
  const DoomedFolder doomed(temporary);  // a signal that ends the program removes the file
  const bool written = write_all(file, content) && fsync(file) == 0;
  const bool is_in_place = written && rename(temporary.c_str(), path.c_str()) == 0;
  const bool is_folder = written && errno == EISDIR;
  const std::string why = is_in_place ? "" : system_reason();
  close(file);  // only now, since a process that sweeps removes what nobody has locked
  if (is_in_place) return sync_path(parent_of(path));
  unlink(temporary.c_str());
  fail(path, ": cannot be written (", why, is_folder ? "); move this folder away" : ")");
}

std::string staged_name(const std::string& path) {
  constexpr uint64_t least = 100'000'000'000'000;  // of fifteen digits
  uint64_t draw = 0;
  if (getrandom(&draw, sizeof draw, 0) != sizeof draw)
    draw = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return concat(path, ".tmp-", least + draw % (9 * least));
}

bool swap_paths(const std::string& one, const std::string& other) {
  return renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

StagedFolder::StagedFolder(const std::string& final_path, unsigned mode)
    : final_(fs::path(final_path).lexically_normal().string()) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();  // the staged folder of out/ is a sibling, too
  sweep_unfinished(final_);
  std::error_code error;
  fs::create_directories(parent_of(final_), error);
  require(!error, final_, ": cannot be created (", error.message(), ")");
  for (int attempt = 0; attempt < 6 && lock_ < 0; ++attempt) {
    if (!staged_.empty()) fs::remove(staged_, error);  // without a lock, unless a process swept it
    staged_ = staged_name(final_);
    require(mkdir(staged_.c_str(), mode) == 0, final_, ": cannot be created (", system_reason(), ")");
    lock_ = locked_folder(staged_);  // none: a process that sweeps came between the two
  }
  doomed_.emplace(staged_);
}

StagedFolder::~StagedFolder() {
  std::error_code error;
  if (!committed_) fs::remove_all(staged_, error);
  if (error) log_warning("files", concat(staged_, ": cannot be removed (", error.message(), "); remove it"));
  if (lock_ >= 0) close(lock_);
}

void StagedFolder::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(staged_)) sync_path(entry.path().string());
  sync_path(staged_);
  doomed_.reset();
  std::error_code error, ignored;
  if (swap_paths(staged_, final_)) {
    committed_ = true;
    sync_path(parent_of(final_));
    fs::remove_all(staged_, ignored);  // what was there before
    return;
  }
  const std::string old = staged_ + ".old";
  if (fs::exists(final_)) fs::rename(final_, old, error);
  if (!error) fs::rename(staged_, final_, error);
  if (error && fs::exists(old)) fs::rename(old, final_, ignored);  // the old folder stays
  require(!error, final_, ": cannot be put in place (", error.message(), ")");
  committed_ = true;
  sync_path(parent_of(final_));
  fs::remove_all(old, error);
}

bool is_staged(const std::string& name) {
  const auto at = name.rfind(".tmp-");
  if (at == std::string::npos || at == 0) return false;
  const std::string_view rest = std::string_view(name).substr(at + 5);
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return digits > 0 && (digits == rest.size() || rest.substr(digits) == ".old");
}

void sweep_staged(const std::string& folder, bool (*is_left)(const std::string& name)) {
  std::vector<fs::path> staged;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_left(entry.path().filename().string())) staged.push_back(entry.path());
  for (const auto& path : staged) sweep_unused(path);
}

uint64_t free_bytes(const std::string& path) {
  auto at = fs::absolute(path);
  while (!fs::exists(at) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  std::error_code error;
  const auto space = fs::space(at, error);
  return error ? 0 : space.available;
}

LineRead read_line(std::istream& in, std::string& line, size_t most) {
  line.clear();
  std::array<char, 1 << 12> part;
  while (line.size() < most) {
    const auto room = std::min(part.size(), most - line.size() + 1);  // with the NUL at its end
    in.getline(part.data(), static_cast<std::streamsize>(room));
    const auto count = static_cast<size_t>(in.gcount());
    if (in.good()) {  // the line feed was counted
      line.append(part.data(), count - 1);
      return LineRead::whole;
    }
    line.append(part.data(), count);
    if (in.eof() || in.bad() || count == 0) return line.empty() ? LineRead::none : LineRead::whole;
    in.clear();  // the part is full
  }
  return LineRead::beginning;
}

LogLines::LogLines(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) in_.open(path, std::ios::binary);
}

bool LogLines::next(std::string& line) {
  constexpr size_t longest = 1 << 20;
  const auto read = read_line(in_, line, longest);
  if (read == LineRead::beginning) in_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  return read != LineRead::none;
}

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

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  require<Error>(!error, "TMPDIR, the folder for temporary files: cannot be used (", error.message(),
                 "); set it to another folder");
  const bool is_writable = access(parent.c_str(), W_OK | X_OK) == 0;
  require<Error>(is_writable, parent.string(), ": cannot create a temporary folder there (", system_reason(),
                 "); set TMPDIR to another folder");
  folder_.emplace((parent / concat("cloze-", geteuid())).string(), 0700);
}

}  // namespace cloze
