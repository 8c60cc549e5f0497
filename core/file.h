#pragma once
// Files that are complete or absent.
#include <cstdint>
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

}  // namespace cloze
