#pragma once
// Fine-tuning on a task, by the loop of pretraining.
#include "train/pretrain.h"

namespace cloze {

/// The parts of a run: of one with a task its rows, its scores and its test part, of another those of pretraining.
TrainingParts parts_of_run(const RunConfig& config);

}  // namespace cloze
