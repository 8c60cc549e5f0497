#include "train/callbacks/checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "run/checkpoints/base.h"
#include "run/checkpoints/milestones.h"
#include "run/folder.h"
#include "train/callbacks/babylm_rules.h"
#include "train/orders.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

void restore_progress(Training& training, const TrainState& state) {
  training.progress = state;
  go_on_from_progress(training);
  training.time_breakdown = training.stepper->time_breakdown = state.time_breakdown;
  training.uncounted_seconds = state.seconds - state.time_breakdown.seconds;
}

/// The weights of the step, and their average where the run keeps one.
void restore_weights(Training& training, const SavedStep& saved) {
  auto& stepper = *training.stepper;
  const auto& [checkpoint, state, is_branch] = saved;
  load_base(training.options.run, state, training.config, *training.network, training.store.tokenizer());
  const auto iterate = checkpoint + "/iterate.safetensors", weights = checkpoint + "/weights.safetensors";
  const bool is_averaged = fs::exists(iterate);
  load_weights(is_averaged ? iterate : weights, params_in(state, *training.network));
  stepper.restart_average();
  const auto averages = stepper.averages();
  if (is_averaged && !averages.empty()) load_weights(weights, averages);
  if (!is_averaged && !averages.empty())
    log_info("train", concat(checkpoint, ": has no average of its weights; that of train.ema_decay starts here"));
}

/// Returns the step after which the moments began.
int64_t restore_moments(Training& training, const std::string& checkpoint, const TrainState& state,
                        const StateDict& moments) {
  const auto kind = rules_of(training.config.optimizer);
  if (!state.optimizer.empty() && state.optimizer != kind) {
    log_info("train",
             concat(checkpoint, ": was made by ", state.optimizer, "; the moments of ", kind, " start from zero"));
    return state.step;
  }
  if (!moments.empty()) training.stepper->load_optimizer(moments, state.step - state.moments_reset_at);
  return state.moments_reset_at;
}

void restore_mems(Stepper& stepper, const std::string& checkpoint, bool rows_differ) {
  const auto mems = load_mems(checkpoint);
  if (!rows_differ || mems.empty())
    stepper.load_mems(mems);
  else
    log_info("train", concat(checkpoint,
                             ": config or data have changed, so rows may not continue the previous ones; the mems "
                             "start from zero"));
}

/// A log that somebody removed begins again.
void keep_log(const std::string& run) {
  const auto path = run + "/log.txt";
  std::error_code unknown;
  if (fs::exists(path, unknown) || !fs::is_directory(run, unknown)) return;
  set_log_file(path);
  log_warning("train", concat(path, " was removed while the run writes it; it begins again"));
}

void tell_saved(const Training& training, const TrainState& state) {
  nlohmann::json facts;
  facts["best"] = state.best_step == state.step;
  for (const auto& name : step_folders(training.options.run))
    if (step_of_folder(name) == state.step) facts["folder"] = name;
  training.tell("checkpoint", std::move(facts));
}

}  // namespace

void Checkpoints::restore_all(Training& training, const std::string& checkpoint, bool is_branch, bool rows_differ) {
  StateDict moments;
  const SavedStep saved{.folder = checkpoint, .state = load_state(checkpoint, &moments), .is_branch = is_branch};
  const auto& state = saved.state;
  restore_progress(training, state);
  restore_weights(training, saved);
  moments_reset_at_ = restore_moments(training, checkpoint, state, moments);
  restore_mems(*training.stepper, checkpoint, rows_differ);
  training.stepper->refresh();
  for (const auto& callback : training.callbacks) callback->restore(training, saved);
  restored_ = state;
  saved_at_ = is_branch ? -1 : state.step;
  due_ = is_branch;  // it begins with a copy of the checkpoint
  log_info("train", concat(training.options.resume ? "resumed from " : "branched from ", checkpoint));
  if (state.row_rules != row_rules)
    log_warning("train",
                concat(checkpoint,
                       ": was made by a version of Cloze that packed and masked rows differently; from here on "
                       "rows follow this version, so the final weights differ from those of that version"));
}

void Checkpoints::begin(Training& training) {
  if (due_) save_step(training, /*must=*/true);
}

void Checkpoints::note_due(const Training& training, bool at_end) {
  const int64_t every = training.config.checkpoint.every;
  due_ = !at_end && is_within_budget(training) && every > 0 && training.progress.step % every == 0;
}

void Checkpoints::after_step(Training& training) {
  if (due_) save_step(training, /*must=*/false);
}

TrainState Checkpoints::state_of(Training& training) const {
  TrainState state{training.progress};
  for (const auto& callback : training.callbacks) callback->save(state);
  state.optimizer = rules_of(training.config.optimizer);
  state.metrics_bytes = training.metrics->sync();
  state.time_breakdown = full_time_breakdown(training);
  return state;
}

void Checkpoints::save_step(Training& training, bool must) {
  if (saved_at_ == training.progress.step) return;
  const auto start = Clock::now();
  const auto& stepper = *training.stepper;
  const auto& run = training.options.run;
  training.lock->require_in_place();
  keep_log(run);
  const auto state = state_of(training);
  give_order(training, Order::save);
  training.stepper->collect();
  try {
    const auto weights = stepper.params(), averages = stepper.averages();
    const bool averaged = !averages.empty();
    save_checkpoint(run, state, averaged ? averages : weights, stepper.optimizer_state(), stepper.mems(),
                    averaged ? weights : averages, made_by(training), [&] { training.lock->require_in_place(); });
    saved_at_ = state.step;
    training.lock->require_in_place();
    prune_checkpoints(run, training.config.checkpoint.keep);
  } catch (const Error& e) {
    training.lock->require_in_place();
    if (must) throw;
    log_warning("train", concat(e.what(), "; the run continues, and the next checkpoint is saved as scheduled"));
  }
  training.stepper->forget_collected();
  training.time_breakdown.checkpoint += seconds_since(start);
  if (saved_at_ == state.step) tell_saved(training, state);
}

void check_disk(const Training& training, int64_t milestones) {
  const auto& run = training.options.run;
  const auto checkpoint = static_cast<double>(training.stepper->checkpoint_bytes());
  const auto& config = training.config;
  auto kept = static_cast<double>(config.checkpoint.keep);
  if (config.checkpoint.every == 0) kept = 1;  // the last
  if (config.checkpoint.every > 0 && config.train.budget.steps > 0)
    kept = std::min(kept, static_cast<double>(config.train.budget.steps / config.checkpoint.every + 1));
  const double needed = checkpoint * (kept + 2 + static_cast<double>(milestones));
  const auto free = static_cast<double>(free_bytes(run));
  require<Error>(free > needed, run, ": its checkpoints need ", bytes(needed), ", the disk has ", bytes(free),
                 " free; free some space, or lower checkpoint.keep or keep fewer checkpoint.at_words");
}

void Milestones::restore(Training& training, const SavedStep& saved) {
  words_ = saved.state.words < 0 ? usage(training).words : saved.state.words;
  at_words_ = saved.state.at_words;
}

void Milestones::note_due(const Training& training, bool at_end) {
  if (at_end) return;
  const double read = usage(training).words;
  at_words_ = reached(training.config.checkpoint.at_words, words_, read);
  words_ = read;
}

void Milestones::after_step(Training& training) {
  if (at_words_.empty()) return;
  checkpoints_.save_step(training, /*must=*/true);  // the next step cannot make up for it
  std::string names;
  for (const int64_t number : at_words_) names += (names.empty() ? "" : ", ") + revision_of(number);
  end_progress();
  log_info("train", concat("step ", training.progress.step, ": ", thousands(static_cast<uint64_t>(words_)),
                           " words read; kept as ", names));
}

void Milestones::save(TrainState& state) const {
  state.words = words_;
  state.at_words = at_words_;
}

int64_t Milestones::ahead(const Training& training) const {
  const auto text_words = static_cast<double>(training.store.train_words().value_or(0));
  return static_cast<int64_t>(
      reached(training.config.checkpoint.at_words, words_, planned_epochs(training) * text_words).size());
}

}  // namespace cloze
