#pragma once
// What comes before the first step of a process that trains a run.
#include "train/callbacks/held_out.h"
#include "train/callbacks/suites.h"
#include "train/callbacks/training_log.h"
#include "train/training.h"

namespace cloze {

/// The callbacks that the end of a run asks for what they know.
struct Callbacks {
  TrainingLog& log;
  HeldOutEvaluation& held_out;
  SuiteEvaluation& suites;
  Checkpoints& checkpoints;
};

/// Checks what a run needs, makes its network with new weights or those of its origin, opens its folder, and adds its
/// callbacks, which have not begun. Throws ConfigError, DataError, CheckpointError.
Callbacks prepare(Training& training);

/// The same in another process than the first, which has the weights and the progress: share_start (train/orders.h)
/// gives them to this one. Throws as `prepare`.
void prepare_to_follow(Training& training);

}  // namespace cloze
