#pragma once
// A run while a process trains it: what the loop advances and its callbacks read.
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "distributed/communicator.h"
#include "run/config/config.h"
#include "run/folder.h"
#include "run/memory.h"
#include "run/records/metrics.h"
#include "train/callbacks/callback.h"
#include "train/pretrain.h"
#include "train/stepper.h"
#include "train/warnings.h"

namespace cloze {

/// What a run has used up so far.
struct Usage {
  double steps = 0;
  double tokens = 0;
  double predicted_tokens = 0;
  double words = 0;   ///< of the raw text, each time it is seen
  double epochs = 0;  ///< passes over the training text
  double flops = 0;
  double minutes = 0;
};

/// The amount done and the total in the currency that is closest to its limit: {0, 1} before the first step.
std::pair<double, double> nearest_limit(const BudgetConfig& budget, const Usage& usage);

/// The share of the budget that is used, in [0, 1].
double used_share(const BudgetConfig& budget, const Usage& usage);

/// The sequences of an optimizer step.
struct StepSize {
  int64_t batch_size = 0;    ///< in a forward pass
  int64_t accumulation = 1;  ///< forward passes, of all processes
  uint64_t sequences() const { return static_cast<uint64_t>(batch_size * accumulation); }
};

/// A step that was made.
struct StepDone {
  Stepper::Result result{};
  double learning_rate = 0;
  double share_before = 0;  ///< of the budget that was used before it
};

/// The config with the values that depend on the data. Throws ConfigError if model and tokenizer do not fit.
RunConfig resolved_config(RunConfig config, const TokenStore& store);

/// A run while a process trains it. The loop alone advances `progress` and `last`; what a callback remembers is its
/// own. Of several processes the first has the callbacks, and the others make its steps (train/follow.h).
struct Training {
  /// held  of the run's folder; null: this is not the first process, and writes nothing
  Training(const RunConfig& run_config, const PretrainOptions& pretrain_options, const TrainingParts& made_of,
           Communicator& group, RunLock* held);

  /// Adds a callback to the end of the list.
  template <class C>
  C& add(std::unique_ptr<C> callback) {
    C& added = *callback;
    callbacks.push_back(std::move(callback));
    return added;
  }
  /// Tells all callbacks of an event: its kind, and its facts besides those of every event.
  void tell(const char* kind, nlohmann::json facts) const;
  /// Writes a row of metrics.jsonl. Throws CheckpointError where the folder of the run is no longer at its place.
  void record(const nlohmann::json& row);
  /// Writes a file of the run at once or not at all. Throws as `record`, and Error with the system's reason.
  void write(const std::string& name, const std::string& content);

  const PretrainOptions options;
  const TrainingParts parts;
  Communicator& processes;      ///< that train the run together
  const MachineMemory machine;  ///< for those of them that are on it
  RunLock* const lock;          ///< of the run's folder, without which nothing is written there
  const TokenStore store, held_out_store;
  const RunConfig config;  ///< resolved
  Collator collator;       ///< of the phase
  StepSize step_size;      ///< of the phase
  std::shared_ptr<Network> network{};
  std::unique_ptr<Stepper> stepper{};
  std::unique_ptr<Metrics> metrics{};
  RunProgress progress{};
  StepDone last{};                 ///< the last step of this process
  TimeBreakdown time_breakdown{};  ///< without the times that the stepper measures
  double uncounted_seconds = 0;    ///< before a checkpoint that has no time_breakdown
  std::vector<double> waited{};    ///< seconds that each process has waited for others in steps, by rank; of one none
  double between_steps = 0;        ///< seconds in which this process, not the first, has waited for what is next
  std::string stop_reason{};       ///< why a callback ends the run before its budget; empty: it goes on
  Guessing guessing;               ///< a loss far above it says that the run has diverged
  bool has_diverged = false;       ///< that has been reported
  std::vector<std::unique_ptr<Callback>> callbacks{};
};

/// What makes the weights from here on.
MadeBy made_by(const Training& training);

/// What the run has used up so far.
Usage usage(const Training& training);

/// The amount done and the total in the currency of the budget that is closest to its limit.
std::pair<double, double> budget_progress(const Training& training);

/// Whether something of the budget is left.
bool is_within_budget(const Training& training);

/// The share of the budget that is used, in [0, 1].
double budget_share(const Training& training);

/// The times of this process and of those before it.
TimeBreakdown full_time_breakdown(const Training& training);

/// Reports, once a process, that the run has diverged: as an event, and as a warning. Throws Diverged where
/// train.on_divergence is stop.
void report_divergence(Training& training, const std::string& warning);

/// Makes the rows of the phase that the progress names, from where it says that they began. Throws ConfigError if the
/// config has fewer phases.
void open_phase(Training& training);

/// Goes on from where the progress says: the rows of its phase, and objectives that depend on the step.
void go_on_from_progress(Training& training);

/// The next phase is due.
bool phase_is_over(const Training& training);

/// Moves on to the phase that is due. Its order begins in the epoch that the run is in, as far into it as the run is,
/// at the next step of the new size.
void begin_due_phase(Training& training);

/// `32 sequences of up to 128 tokens`, of a step in this phase.
std::string rows_of_phase(const RunConfig& config, int64_t phase);

}  // namespace cloze
