#pragma once
// Pretraining: the loop of steps, evaluations and checkpoints.
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "evaluation/evaluate.h"
#include "evaluation/suites/suite_result.h"
#include "run/run.h"
#include "run/training_rows.h"
#include "train/validation.h"

namespace cloze {

struct PretrainOptions {
  std::string run{};              ///< the run directory to create or resume
  bool resume = false;            ///< continue from the newest valid checkpoint
  bool overwrite_config = false;  ///< resume even if the config differs
  std::string branch_from{};      ///< run directory or step folder whose checkpoint a new run continues
  std::string command_line{};     ///< for provenance.json
  std::string hook{};             ///< command that is told of events (run/records/hook.h); empty: none
};

struct PretrainReport {
  int64_t resumed_at = -1;    ///< step of the checkpoint that this process continued; -1: none
  bool had_finished = false;  ///< nothing was left for this process to do
  int64_t steps = 0, tokens = 0;
  double seconds = 0, tokens_per_second = 0, train_loss = 0;
  std::vector<HeldOut> held_out{};  ///< of the last evaluation
  double held_out_loss = 0;         ///< weighted sum, by which the best step is chosen; NaN: not evaluated
  int64_t best_step = 0;
  double unigram_loss = 0;      ///< held-out loss of predicting each token by its frequency in the training text
  double unigram_accuracy = 0;  ///< of always predicting the most frequent token
  TimeBreakdown time_breakdown{};
  std::string stopped_by{};           ///< `budget`, `patience`
  std::vector<SuiteResult> suites{};  ///< their last answers, with the scores of a task's test part
  /// What the run has learned of its task (train/tasks/task_test.h); null: it has none.
  nlohmann::json task{};
};

/// What a run is trained on, what it is judged by, and what else is due in its course: that of pretraining, unless
/// something else is given.
struct TrainingParts {
  /// The rows of a config without phases, from a start on.
  std::function<Collator(const RunConfig&, const TokenStore&, const RowsStart&)> rows = text_rows;
  /// Made when the network has its weights.
  std::function<std::unique_ptr<Validation>(Training&)> validation = [](Training& training) {
    return std::make_unique<HeldOutLosses>(training);
  };
  /// Adds callbacks after those of pretraining.
  std::function<void(Training&)> add_callbacks = [](Training&) {};
  /// What every process does with the network before its first step. Throws Interrupted after a signal.
  std::function<void(Training&)> before_steps = [](Training&) {};
};

/// Trains, with the other processes of the run; the report is that of the first one. Throws ConfigError (bad config,
/// existing run directory), DataError, CheckpointError, Diverged (where train.on_divergence is stop), Interrupted (exit
/// 130, after a checkpoint).
PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options, const TrainingParts& parts = {},
                        Communicator& processes = alone());

}  // namespace cloze
