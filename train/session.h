#pragma once
// What the steps, evaluations, checkpoints and records of a process that trains a run share.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/evaluate.h"
#include "run/folder.h"
#include "run/hook.h"
#include "run/metrics.h"
#include "suites/suite.h"
#include "train/budget.h"
#include "train/pretrain.h"
#include "train/stepper.h"

namespace cloze {

/// The sequences of an optimizer step.
struct StepSize {
  int64_t batch_size = 0;    ///< in a forward pass
  int64_t accumulation = 1;  ///< forward passes
  uint64_t sequences() const { return static_cast<uint64_t>(batch_size * accumulation); }
};

/// Warnings that are given once a process.
struct Warned {
  bool of_few_replaced = false;
  bool of_divergence = false;
  bool of_babylm = false;
  bool of_no_predictions = false;
  bool of_shared_cores = false;
  bool of_nothing_measured = false;  ///< no objective of the evaluation is active yet
};

/// The config with the values that depend on the data. Throws ConfigError if model and tokenizer do not fit.
RunConfig resolved_config(RunConfig config, const TokenStore& store);

/// The rows that a run is trained on with this config, which has no phases, from `start` on.
Collator training_collator(const RunConfig& config, const TokenStore& store, const RowsStart& start);

/// A run while a process trains it.
struct Session {
  Session(const RunConfig& given, const PretrainOptions& asked, RunLock& held);

  PretrainOptions options;
  RunLock& lock;  ///< of the run's folder, without which nothing is written there
  TokenStore store, held_out_store;
  RunConfig config;   ///< resolved
  Collator collator;  ///< of the phase
  StepSize step_size;
  std::vector<Measure> measures;
  std::shared_ptr<Network> network{};
  std::unique_ptr<Stepper> stepper{};
  std::unique_ptr<Metrics> metrics{};
  TrainState state{};
  Ledger ledger{};                  ///< without the times that the stepper measures
  double uncounted_seconds = 0;     ///< before a checkpoint that has no ledger
  bool changed = false;             ///< config or data changed since the checkpoint
  int64_t saved_at = -1;            ///< step of the newest checkpoint, if nothing has happened since
  double train_loss = 0;            ///< of the last step
  nlohmann::json train_losses{};    ///< of each objective, on the last line of the log; null: none in this process
  std::vector<HeldOut> held_out{};  ///< of the last evaluation
  double held_out_loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<Suite> suites{};               ///< of evaluation.suites
  std::vector<SuiteResult> suite_results{};  ///< the last answers to them
  std::string stopped_by = "budget";
  Warned warned{};
  Hook hook;
};

/// What makes the weights from here on.
MadeBy made_by(const Session& session);

/// What the run has used up so far.
Usage usage(const Session& session);

/// The amount done and the total in the currency of the budget that is closest to its limit.
std::pair<double, double> progress(const Session& session);

/// The times of this process and of those before it.
Ledger full_ledger(const Session& session);

/// The unigram baseline of the first objective that predicts tokens; zeros without one.
Baseline first_unigram(const Session& session);

}  // namespace cloze
