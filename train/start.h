#pragma once
// What comes before the first step of a process that trains a run.
#include "train/callbacks/held_out.h"
#include "train/callbacks/suites.h"
#include "train/callbacks/task_test.h"
#include "train/callbacks/training_log.h"
#include "train/training.h"

namespace cloze {

/// The callbacks that the end of a run asks for what they know.
struct Callbacks {
  TrainingLog& log;
  HeldOutEvaluation& held_out;
  SuiteEvaluation& suites;
  Checkpoints& checkpoints;
  TaskTest& task;
};

/// Checks what a run needs, makes its network with new weights or those of its origin, opens its folder, and adds its
/// callbacks, which have not begun. Throws ConfigError, DataError, CheckpointError.
Callbacks prepare(Training& training);

/// Computes the states that probes read of the rows they are trained on, once: their network stays as it is. Where
/// these are too many, each step computes its own. Does nothing for other heads. Throws Interrupted after a signal.
void keep_states(Training& training);

}  // namespace cloze
