#pragma once
// The runs of a study while they train: a table that redraws itself on a terminal, plain lines in a file.
#include <chrono>
#include <map>
#include <string>

#include "study/execution/runs.h"

namespace cloze {

/// The table of a study: one line for each arm, one column for each seed, and the time left.
std::string progress_table(const Plan& plan, const std::vector<RunStatus>& statuses, int64_t columns);

class ProgressView {
 public:
  ProgressView(const Plan& plan, size_t selected);
  /// Redraws the table, at most every half second unless it is the `last`.
  void show(bool last);
  /// A run was done before.
  void skip() { ++ended_; }
  /// A run ended: `failure` empty, or why.
  void note(const PlannedRun& run, const std::string& failure);

 private:
  const Plan& plan_;
  bool terminal_ = false;
  int64_t drawn_ = 0;  ///< lines of the last table
  int said_ = 0;       ///< what signals had said when it was drawn
  int64_t ended_ = 0;
  std::vector<RunStatus> statuses_{};  ///< of all runs, as last shown; one that is done is not read again
  size_t selected_;                    ///< runs that this process may do
  std::chrono::steady_clock::time_point last_{}, start_{};
};

/// Resident memory of a process [bytes]; 0 where there is none.
double resident_bytes(int64_t pid);
/// Memory that new processes may take without swapping [bytes].
double available_memory();

}  // namespace cloze
