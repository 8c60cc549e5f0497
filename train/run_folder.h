#pragma once
// The weights that a process starts from, and the run directory when it begins to train.
#include <optional>
#include <string>

#include "data/store/token_store.h"
#include "run/run.h"
#include "train/pretrain.h"
#include "train/training.h"

namespace cloze {

// A run may continue a checkpoint of another run towards a budget of its own.
//
//   cloze pretrain configs/bert/tiny.yaml --run runs/stable --set schedule.shape=constant --set schedule.warmup=100 ...
//   cloze pretrain --branch-from runs/stable/step-00002000 --run runs/a --set schedule.shape=wsd
//                  --set train.budget.steps=2500
//
// `a` has the bits of a wsd run of 2,500 steps from the start, since both have the same learning rates up to step
// 2,000.

/// The checkpoint that a branch starts from.
struct BranchPoint {
  std::string run;         ///< the run directory
  std::string checkpoint;  ///< its step folder
  RunConfig config;        ///< of that run
};

/// The newest valid checkpoint of a run directory, or the step folder that `from` names. Throws CheckpointError.
BranchPoint find_branch_point(const std::string& from);

/// Throws ConfigError unless `now`, trained from the start, would have had the bits of the checkpoint: only budget and
/// schedule differ, the texts are the same, and up to here the learning rates are.
/// store, held_out          of the branch
/// used_before, used_now   shares of the budgets of both configs that are used at the checkpoint
void check_branch(const BranchPoint& point, const RunConfig& now, const TokenStore& store, const TokenStore& held_out,
                  double used_before, double used_now);

/// At most one is given; without any, the weights are drawn.
struct Origin {
  std::string checkpoint{};             ///< of the run itself, which is resumed
  std::optional<BranchPoint> branch{};  ///< of the run that this one branches from
  std::string initial{};                ///< the run or checkpoint whose weights initialize this run
};

/// The origin of a run. One that was killed before its first checkpoint has the origin that it began with. Throws
/// CheckpointError if that is missing or its record is damaged.
Origin find_origin(const RunConfig& config, const PretrainOptions& options);

/// Creates the run directory with config, provenance and tokenizer, or checks that the one to resume was made with this
/// config and these tokens; from here on the log is written there. A branch starts with the metrics of its run. What
/// this process changes in a run is recorded in its history and logged, and so are other tokens. Returns whether its
/// rows may differ from those of the run so far. Throws ConfigError, and Error with the system's reason.
bool open_run_folder(Training& training, const Origin& origin);

}  // namespace cloze
