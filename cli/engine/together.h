#pragma once
// One process of several that train a run together: how it meets the others, and how all of them end.
#include <functional>

#include "cli/command.h"
#include "distributed/communicator.h"
#include "train/pretrain.h"

namespace cloze {

/// Trains as a command says, with the other processes, and reports where this is the first.
using TrainTogether =
    std::function<int(const PretrainCommand& command, const TrainingParts& parts, Communicator& processes)>;

/// Meets the others, compares programs, and has every command of the first process trained by all. What one of them
/// throws ends all. Returns the exit code.
int run_together(const TogetherCommand& command, const TrainTogether& train);

}  // namespace cloze
