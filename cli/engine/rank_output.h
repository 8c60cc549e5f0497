#pragma once
// Where a process that is not the first of a run speaks.
#include <unistd.h>

#include <cstdint>
#include <string>

#include "core/mapped_file.h"
#include "distributed/meeting.h"

namespace cloze {

/// Standard output and errors of such a process, for the rest of its life: kept in memory until the folder of the run
/// is open, then a file in it.
class RankOutput {
 public:
  explicit RankOutput(int64_t rank);
  /// Goes on in `folder`/RANK.log. Where there can be no such file, this process speaks where it was started, each line
  /// of its log after its rank.
  void open(const std::string& folder);
  /// The last sentence of this process. `for_all`: nobody else says it where the run was started.
  void speak(const Failure& failure, bool for_all) const;

 private:
  int64_t rank_;
  int started_at_;  ///< standard error where this process was started
  bool is_open_ = false;
  MemoryFile early_{};
};

/// `cloze: error: ...`, in a line of its own; without `error` where a signal has stopped the run.
void write_failure(const Failure& failure, int file);

}  // namespace cloze
