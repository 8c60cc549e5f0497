#pragma once
// Files and folders: complete or absent, opened as what they are, read a line at a time.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "core/interrupt.h"

namespace cloze {

/// The content of a file. Throws Error with the system's reason, or if it is longer than `max_bytes`.
std::string read_text(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

/// Writes a temporary file next to `path`, syncs and renames it; a link there is replaced, not followed. Throws Error
/// with the system's reason; no partial file is left, nor those of processes that were killed.
void write_atomic(const std::string& path, std::string_view content);

/// A name for what is half written next to `path`, `NAME.tmp-` and fifteen digits that nobody can guess.
std::string staged_name(const std::string& path);

/// Exchanges two paths atomically; false where the file system cannot, or one of them is missing.
bool swap_paths(const std::string& one, const std::string& other);

/// Removes the folders that killed processes began to fill for `final_path`; those that are still filled are locked.
/// For verbs that refuse a result which is there: a kill after it was renamed may leave what it replaced.
void sweep_unfinished(const std::string& final_path);

/// A folder that is filled under a temporary name and renamed to its final path in one step. A signal that ends the
/// program removes it.
class StagedFolder {
 public:
  /// Removes what killed processes left of the same folder. `mode`: permissions, less those of the umask.
  explicit StagedFolder(const std::string& final_path, unsigned mode = 0777);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  /// Removes the folder unless it was committed.
  ~StagedFolder();
  const std::string& path() const { return staged_; }
  /// Syncs every file and renames the folder to its final path. An existing one is exchanged with it atomically, where
  /// the file system can do that, and is removed.
  void commit();

 private:
  std::string final_, staged_;
  std::optional<DoomedFolder> doomed_;
  int lock_ = -1;  ///< tells other processes that this one fills the folder
  bool committed_ = false;
};

/// Whether a file name is that of something half written: `NAME.tmp-DIGITS`, or `NAME.tmp-DIGITS.old`, which it
/// replaces.
bool is_staged(const std::string& name);

/// Removes the entries of a folder that killed processes left half written: those that `is_left` by name, that belong
/// to this user, and that no process writes. What was about to be replaced, and was not, gets its name back.
void sweep_staged(const std::string& folder, bool (*is_left)(const std::string& name));

/// Free bytes in the file system of `path` (or of its nearest existing parent).
uint64_t free_bytes(const std::string& path);

/// `errno` in words: `No space left on device`. Arguments of a call have no order: the call that fails comes in a
/// statement before the one that asks for its reason.
std::string system_reason();

/// What `read_line` has read: nothing at the end of the stream, a line, or the beginning of a longer one.
enum class LineRead { none, whole, beginning };

/// Reads a line without its end, of a longer one its first `most` bytes, after which the next call goes on.
LineRead read_line(std::istream& in, std::string& line, size_t most);

/// The lines of a log, which others may have made: none of a pipe or a device, and of a line over 1 MiB, which no run
/// writes, the beginning.
class LogLines {
 public:
  explicit LogLines(const std::string& path);
  /// Reads the next line without its end; false at the end.
  bool next(std::string& line);

 private:
  std::ifstream in_{};
};

/// Whether a path still names the open file, which another process may have removed or replaced.
bool is_file_at(int file, const std::string& path);

/// Whether a path, not what it may link to, belongs to this user. In a folder of all users, such as that for temporary
/// files, others make what they like.
bool is_of_this_user(const std::string& path);

/// Throws Error for a path that is neither absent nor a file of its own: a link, through which another file would be
/// changed, a device or a pipe.
void require_own_file(const std::string& path);

/// Opens a file that is written in place, by the flags of open(2); it is made where none is there. A file that has
/// another name as well, a hard link, is written as a copy of its own. -1 on an error (errno). Throws Error as
/// `require_own_file`.
int open_own(const std::string& path, int flags, unsigned mode = 0666);

/// Opens a file to be read; a pipe without waiting for who writes to it. -1 on an error (errno).
int open_to_read(const std::string& path);

/// `open_own` as a stream, by the modes `wb`, `w+b` and `ab` of fopen(3); null on an error (errno).
std::FILE* open_own(const std::string& path, const char* mode);

/// An empty temporary folder of this user alone, in TMPDIR, under a name that nobody can guess. It is removed with the
/// object, by a signal that ends the program, or, where the process was killed, by the next one of the same user.
/// Throws Error if there is no room for it.
class ScratchFolder {
 public:
  ScratchFolder();
  const std::string& path() const { return folder_->path(); }

 private:
  std::optional<StagedFolder> folder_;  ///< never put in place
};

}  // namespace cloze
