#pragma once
// The folder of a run while one process trains it, and its step folders.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock.h"
#include "run/run_files.h"

namespace cloze {

/// Removes the files of a `begun` run that a new one would continue; provenance.json stays until it is replaced.
void clear_begun_run(const std::string& run);

/// Throws Error where a file of the run that is written in place, or a folder in it that is written to, is a link: what
/// is elsewhere would be changed.
void require_own_files(const std::string& run);

/// The right of one process to train in a folder.
class RunLock {
 public:
  /// Creates the folder and removes what killed processes left half written. Throws ConfigError if there is nothing to
  /// resume, or anything that a new run would replace but a `begun` one; Error that names the process that works there.
  RunLock(const std::string& run, bool resume);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  /// Removes the folder if it was created and is still empty.
  ~RunLock();
  /// Throws CheckpointError where the folder was moved, removed or replaced since it was locked: what has its name now
  /// is not to be written to, nor to be pruned. A lock that was removed is taken again.
  void require_in_place();
  /// Writes a file of the run at once or not at all. Throws as `require_in_place`, and Error with the system's reason.
  void write(const std::string& name, std::string_view content);

 private:
  std::string run_;
  bool created_ = false;
  int folder_ = -1;  ///< open, so that its number in the file system is no other folder's
  std::optional<Lock> lock_;
};

/// The names of the step folders of a run, newest first; none of a folder that cannot be read.
std::vector<std::string> step_folders(const std::string& run);
/// The step in the name of a step folder.
int64_t step_of_folder(const std::string& name);

}  // namespace cloze
