#pragma once
// A run that continues a checkpoint of another run towards a budget of its own.
//
//   cloze pretrain configs/bert/tiny.yaml --run runs/stable --set schedule.shape=constant --set schedule.warmup=100 ...
//   cloze pretrain --branch-from runs/stable/step-00002000 --run runs/a --set schedule.shape=wsd
//                  --set train.budget.steps=2500
//
// `a` has the bits of a wsd run of 2,500 steps from the start, since both have the same learning rates up to step
// 2,000.
#include "data/store/token_store.h"
#include "run/run.h"

namespace cloze {

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

}  // namespace cloze
