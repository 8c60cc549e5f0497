#include "train/checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/log.h"
#include "evaluation/held_out_file.h"
#include "run/milestones.h"
#include "train/babylm_rules.h"
#include "train/events.h"
#include "train/phases.h"
#include "train/stopwatch.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using NamedMoments = std::vector<std::pair<std::string, Tensor>>;

void restore_state(Session& session, const std::string& checkpoint, NamedMoments& moments) {
  auto& state = session.state;
  state = load_state(checkpoint, &moments);
  open_phase(session);
  session.ledger = state.ledger;
  session.stepper->ledger = state.ledger;
  if (state.words < 0) state.words = usage(session).words;
  session.uncounted_seconds = state.seconds - state.ledger.seconds;
  for (const auto& objective : session.network->objectives) objective->set_step(std::max<int64_t>(state.step - 1, 0));
}

/// The best loss is one of the same evaluation, or there is none.
void restore_best(Session& session, const std::string& checkpoint) {
  auto& state = session.state;
  if (state.evaluation_protocol == evaluation_protocol(session.config, session.held_out_store)) return;
  if (state.best_step > 0)
    log_info("train",
             words(checkpoint,
                   ": its best held-out loss comes from a different evaluation; the search for the best starts over"));
  state.best_step = 0;
  state.evaluations_without_gain = 0;
}

/// The weights of the step, and their average where the run keeps one.
void restore_weights(Session& session, const std::string& checkpoint) {
  auto& stepper = *session.stepper;
  const auto iterate = checkpoint + "/iterate.safetensors", weights = checkpoint + "/weights.safetensors";
  const bool is_averaged = fs::exists(iterate);
  load_weights(is_averaged ? iterate : weights, stepper.params());
  stepper.restart_average();
  const auto averages = stepper.averages();
  if (is_averaged && !averages.empty()) load_weights(weights, averages);
  if (!is_averaged && !averages.empty())
    log_info("train", words(checkpoint, ": has no average of its weights; that of train.ema_decay starts here"));
}

void restore_moments(Session& session, const std::string& checkpoint, const NamedMoments& moments) {
  auto& state = session.state;
  const auto& kind = session.config.optimizer.kind;
  if (!state.optimizer.empty() && state.optimizer != name_of(kind)) {
    state.moments_reset_at = state.step;
    log_info("train",
             words(checkpoint, ": was made by ", state.optimizer, "; the moments of ", kind, " start from zero"));
  } else if (!moments.empty()) {
    session.stepper->load_optimizer(moments, state.step - state.moments_reset_at);
  }
}

void restore_mems(Session& session, const std::string& checkpoint) {
  const auto mems = load_mems(checkpoint);
  if (!session.changed || mems.empty())
    session.stepper->load_mems(mems);
  else
    log_info("train", words(checkpoint,
                            ": config or data have changed, so rows may not continue the previous ones; the mems "
                            "start from zero"));
}

/// The number of checkpoint.at_words that the run has not reached and can, as far as its budget says.
int64_t milestones_ahead(const Session& session) {
  const auto text_words = static_cast<double>(session.store.train_words().value_or(0));
  const auto ahead =
      reached(session.config.checkpoint.at_words, session.state.words, planned_epochs(session) * text_words);
  return static_cast<int64_t>(ahead.size());
}

/// A log that somebody removed begins again.
void keep_log(const std::string& run) {
  const auto path = run + "/log.txt";
  std::error_code unknown;
  if (fs::exists(path, unknown) || !fs::is_directory(run, unknown)) return;
  set_log_file(path);
  log_warning("train", words(path, " was removed while the run writes it; it begins again"));
}

}  // namespace

void restore(Session& session, const std::string& checkpoint) {
  NamedMoments moments;
  restore_state(session, checkpoint, moments);
  restore_best(session, checkpoint);
  restore_weights(session, checkpoint);
  restore_moments(session, checkpoint, moments);
  restore_mems(session, checkpoint);
  session.stepper->refresh();
  const auto& state = session.state;
  // A run that was killed right after its best checkpoint may lack the file `best`.
  if (state.best_step > 0) mark_best(session);
  session.saved_at = state.step;
  log_info("train", words(session.options.resume ? "resumed from " : "branched from ", checkpoint));
  if (state.row_rules != row_rules)
    log_warning("train", words(checkpoint,
                               ": was made by a version of Cloze that packed and masked rows differently; from here on "
                               "rows follow this version, so the final weights differ from those of that version"));
}

void check_disk(const Session& session) {
  const auto& run = session.options.run;
  const auto checkpoint = static_cast<double>(session.stepper->checkpoint_bytes());
  const auto& config = session.config;
  auto kept = static_cast<double>(config.checkpoint.keep);
  if (config.checkpoint.every == 0) kept = 1;  // the last
  if (config.checkpoint.every > 0 && config.train.budget.steps > 0)
    kept = std::min(kept, static_cast<double>(config.train.budget.steps / config.checkpoint.every + 1));
  const double needed = checkpoint * (kept + 2 + static_cast<double>(milestones_ahead(session)));
  const auto free = static_cast<double>(free_bytes(run));
  require<Error>(free > needed, run, ": its checkpoints need ", bytes(needed), ", the disk has ", bytes(free),
                 " free; free some space, or lower checkpoint.keep or keep fewer checkpoint.at_words");
}

void save(Session& session, bool must) {
  auto& state = session.state;
  if (session.saved_at == state.step) return;
  const auto start = Clock::now();
  const auto& stepper = *session.stepper;
  session.lock.require_in_place();
  keep_log(session.options.run);
  state.metrics_bytes = session.metrics->sync();
  state.ledger = full_ledger(session);
  try {
    const auto weights = stepper.params(), averages = stepper.averages();
    const bool averaged = !averages.empty();
    save_checkpoint(session.options.run, state, averaged ? averages : weights, stepper.optimizer_state(),
                    stepper.mems(), averaged ? weights : averages, made_by(session));
    session.saved_at = state.step;
    session.lock.require_in_place();
    prune_checkpoints(session.options.run, session.config.checkpoint.keep);
  } catch (const Error& e) {
    session.lock.require_in_place();
    if (must) throw;
    log_warning("train", words(e.what(), "; the run continues, and the next checkpoint is saved as scheduled"));
  }
  session.ledger.checkpoint += seconds_since(start);
  if (session.saved_at == state.step) tell_checkpoint(session);
}

void save_milestone(Session& session) {
  save(session, /*must=*/true);  // the next step cannot make up for it
  const auto& state = session.state;
  std::string names;
  for (const int64_t words : state.at_words) names += (names.empty() ? "" : ", ") + revision_of(words);
  end_progress();
  log_info("train", words("step ", state.step, ": ", thousands(static_cast<uint64_t>(state.words)),
                          " words read; kept as ", names));
}

void mark_best(Session& session) {
  const auto& run = session.options.run;
  const auto best = find_checkpoint(run, std::to_string(session.state.best_step));
  session.lock.require_in_place();
  if (!best.empty()) write_pointer(run, "best", fs::path(best).filename().string());
}

}  // namespace cloze
