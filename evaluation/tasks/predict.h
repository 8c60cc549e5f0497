#pragma once
// `cloze predict`: predictions for the items of a file.
#include <cstdint>
#include <string>
#include <vector>

#include "run/checkpoints/chosen_checkpoint.h"

namespace cloze {

/// What is predicted by which fine-tuned run, and where it goes.
struct PredictRequest {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run{}, file{}, out{};  ///< out: a file; empty: standard output
  std::string task{};                ///< its file, for a network that came with its head; empty: that of the run
  bool json = false, skip_bad = false;
  int64_t samples = 0;                  ///< passes with dropout; 0: one without
  uint64_t seed = 1;                    ///< of these
  std::vector<std::string> ensemble{};  ///< further runs of the task, whose predictions are averaged
  bool calibrated = false;              ///< probabilities are those at the temperature of the run, or of the mean
  double coverage = 0;                  ///< of sets of labels; 0: none are made
};

/// Writes or prints predictions, and logs their scores where the items have labels. Throws ConfigError for a form of
/// `out` that the task does not have, for means, temperatures and sets that its predictions do not have, for runs of
/// an ensemble with other labels, and as open_task_run; DataError for items that cannot be read.
void predict(const PredictRequest& request);

}  // namespace cloze
