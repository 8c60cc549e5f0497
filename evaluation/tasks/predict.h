#pragma once
// `cloze predict`: predictions for the items of a file.
#include <string>

#include "run/checkpoints/chosen_checkpoint.h"

namespace cloze {

/// What is predicted by which fine-tuned run, and where it goes.
struct PredictRequest {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run{}, file{}, out{};  ///< out: a file; empty: standard output
  std::string task{};                ///< its file, for a network that came with its head; empty: that of the run
  bool json = false, skip_bad = false;
};

/// Writes or prints predictions, and logs their figures where the items have labels. Throws ConfigError for a form of
/// `out` that the task does not have, and as open_task_run; DataError for items that cannot be read.
void predict(const PredictRequest& request);

}  // namespace cloze
