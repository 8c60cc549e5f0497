#pragma once
// The folder of a run while one process trains it.
#include <optional>
#include <string>

#include "core/lock.h"

namespace cloze {

/// What the folder of a run holds.
enum class RunFolder {
  vacant,  ///< nothing, or what a killed process left half written
  begun,   ///< provenance.json and other first files of a run that never saved a checkpoint: it may begin anew
  saved,   ///< a run with a checkpoint, which may be damaged or removed
  other,   ///< something else
};

/// Throws Error for a folder that cannot be read.
RunFolder run_folder(const std::string& run);

/// Removes the files of a `begun` run that a new one would continue; provenance.json stays until it is replaced.
void clear_begun_run(const std::string& run);

/// Throws Error where a file of the run that is written in place, or the folder of its tokenizer, is a link: what is
/// elsewhere would be changed.
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

 private:
  std::string run_;
  bool created_ = false;
  std::optional<Lock> lock_;
};

}  // namespace cloze
