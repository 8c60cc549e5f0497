#include "train/pretrain.h"

#include "core/interrupt.h"
#include "core/log.h"
#include "evaluation/held_out_file.h"
#include "run/folder.h"
#include "run/loss_curve.h"
#include "run/memory.h"
#include "run/milestones.h"
#include "run/objective_short_form.h"
#include "run/process.h"
#include "train/babylm_rules.h"
#include "train/checkpoints.h"
#include "train/events.h"
#include "train/held_out.h"
#include "train/loader.h"
#include "train/phases.h"
#include "train/progress_log.h"
#include "train/records.h"
#include "train/run_folder.h"
#include "train/schedule.h"
#include "train/start.h"
#include "train/stopwatch.h"
#include "train/suites.h"
#include "train/warnings.h"

namespace cloze {

namespace {

constexpr int64_t max_skips = 10;

// -- The loop -------------------------------------------------------------------------------------------------------

/// Factor on the learning rate. A warm-up given in steps counts steps whichever limit ends the run; the total number
/// of steps is then extrapolated from the progress so far.
double rate_factor(const Session& session) {
  const auto& schedule = session.config.schedule;
  const auto [done, total] = progress(session);
  const auto step = static_cast<double>(session.state.step);
  if (schedule.warmup < 1 || done == step) return schedule_factor(schedule, done, total);
  return schedule_factor(schedule, step, step * (total / done));
}

/// Skips a step whose loss or gradient is not finite, or throws.
void refuse(const Session& session, const Stepper::Result& result, int64_t skips) {
  end_progress();
  const auto& state = session.state;
  const auto text = words(result.nonfinite, " is not finite at step ", state.step + 1, " (sequences ", state.sequences,
                          " to ", state.sequences + session.step_size.sequences() - 1, ")");
  if (session.config.train.on_nonfinite == OnNonFinite::skip && skips <= max_skips) {
    log_warning("train", text + "; the step is skipped");
    return;
  }
  const auto last = find_checkpoint(session.options.run);
  fail(text, skips > max_skips ? words(", and so were the ", max_skips, " before it") : "",
       "; no update was made, the last good checkpoint is ", last.empty() ? "none yet" : last,
       "; lower the learning rate, or skip such steps with --set train.on_nonfinite=skip");
}

/// Clocks and counts of the loop.
struct Pace {
  CoreTime cores = core_time();  ///< before the loop
  Clock::time_point start = Clock::now(), shown = Clock::now();
  double pause = 0;           ///< seconds of evaluations and checkpoints in this process
  double seconds_before = 0;  ///< of training, in earlier processes
  double seconds_at_log = 0;
  int64_t tokens_at_log = 0;
  int64_t skips = 0;  ///< steps in a row that were not finite
};

std::vector<Batch> next_batches(Session& session, Loader& loader) {
  const auto waiting = Clock::now();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.step_size.accumulation; ++i) batches.push_back(loader.next());
  session.ledger.data_wait += seconds_since(waiting);
  return batches;
}

/// Counts a step that was made.
void count(Session& session, const Stepper::Result& result, const Pace& pace) {
  auto& state = session.state;
  ++state.step;
  state.tokens += result.tokens;
  state.predicted_tokens += result.predicted_tokens;
  state.flops += result.flops;
  state.seconds = pace.seconds_before + seconds_since(pace.start) - pace.pause;
  session.train_loss = result.loss;
  state.line.add(result.parts, result.grad_norm);
}

/// Counts the words read, and notes which of checkpoint.at_words the step reached.
void count_words(Session& session) {
  auto& state = session.state;
  const double read = usage(session).words;
  state.at_words = reached(session.config.checkpoint.at_words, state.words, read);
  state.words = read;
}

/// Warns, once a process, of a step in which no loss has predictions.
void warn_of_no_predictions(Session& session, const Stepper::Result& result) {
  const auto has_some = [](const LossPart& part) { return part.count > 0; };
  if (std::any_of(result.parts.begin(), result.parts.end(), has_some)) return;
  if (std::exchange(session.warned.of_no_predictions, true)) return;
  end_progress();
  log_warning("train", no_predictions_warning(session.state.step));
}

/// Reports, once a process, if the losses since the previous line of the log are those of a run that has diverged.
void look_for_divergence(Session& session) {
  const int64_t vocabulary = backbone_of(session.config.model).vocab_size;
  for (const auto& part : session.state.line.parts)
    if (is_far_above_guessing(part.loss(), vocabulary))
      report_divergence(session,
                        divergence_warning("loss of " + part.name, part.loss(), session.state.step, vocabulary));
}

/// Warns, once a process, of other processes on its cores.
void warn_of_shared_cores(Session& session, const Pace& pace) {
  constexpr double long_enough = 10;  // [s]
  if (session.warned.of_shared_cores || seconds_since(pace.start) < long_enough) return;
  session.warned.of_shared_cores = true;
  const auto warning = shared_cores_warning(pace.cores, core_time());
  if (warning.empty()) return;
  end_progress();
  log_warning("threads", warning);
}

bool is_within_budget(const Session& session) {
  const auto [done, total] = progress(session);
  return done < total;
}

/// Shows the progress line, and writes the line of the log that is due. Throws CheckpointError where the folder of the
/// run is no longer at its place.
void log_step(Session& session, Pace& pace, double rate) {
  auto& state = session.state;
  const bool is_due = state.step % session.config.checkpoint.log_every == 0 || state.step == 1;
  if (!is_due && seconds_since(pace.shown) <= 1 && is_within_budget(session)) return;
  const double window = state.seconds - pace.seconds_at_log;
  const double speed = window > 0 ? static_cast<double>(state.tokens - pace.tokens_at_log) / window : 0;
  warn_of_shared_cores(session, pace);
  show_progress(session, rate, speed, is_due);
  pace.shown = Clock::now();
  if (!is_due) return;
  record_training(session, rate, speed);
  look_for_divergence(session);
  state.line = {};
  pace.tokens_at_log = state.tokens;
  pace.seconds_at_log = state.seconds;
}

[[noreturn]] void stop(const Session& session) {
  end_progress();
  throw Interrupted(words("stopped at step ", session.state.step, "; continue with `cloze pretrain --run ",
                          session.options.run, " --resume`"));
}

/// Saves the state after the last whole step, if there is one, and stops. The next process makes again what a signal
/// has ended: the step, or the evaluation that was due after the last one.
[[noreturn]] void leave_step(Session& session) {
  if (session.state.step > 0) save(session, /*must=*/true);
  stop(session);
}

/// One optimizer step; false if it was not finite and is skipped. Throws Interrupted if a signal ends it.
bool train_step(Session& session, Loader& loader, Pace& pace) {
  auto& state = session.state;
  const auto batches = next_batches(session, loader);
  const double rate = session.config.optimizer.learning_rate * rate_factor(session);
  const auto result = session.stepper->step(batches, state.step, rate);
  if (!result.complete) leave_step(session);
  if (!result.finite) refuse(session, result, ++pace.skips);
  state.sequences += session.step_size.sequences();
  if (!result.finite) return false;
  pace.skips = 0;
  count(session, result, pace);
  warn_of_no_predictions(session, result);
  count_words(session);
  warn_of_babylm_rules(session);
  log_step(session, pace, rate);
  return true;
}

/// Notes what is due after a step, until it is done: it is part of the checkpoint.
void note_due(Session& session, double share_before) {
  const bool goes_on = is_within_budget(session);
  session.state.held_out_due = goes_on && evaluation_is_due(session, share_before);
  session.state.suites_due = goes_on && suites_are_due(session);
}

/// Makes the evaluations that are due and that the config still asks for; those that a signal ends stay due. False
/// after a signal.
bool evaluate_due(Session& session) {
  const auto& evaluation = session.config.evaluation;
  auto& state = session.state;
  state.held_out_due = state.held_out_due && (evaluation.every > 0 || evaluation.points > 0);
  state.suites_due = state.suites_due && evaluation.suite_every > 0 && !session.suites.empty();
  try {
    if (state.held_out_due && !interrupted) evaluate_held_out(session);
    if (state.suites_due && !interrupted) answer_suites(session);
  } catch (const Interrupted&) {
  }
  return !interrupted;
}

/// The evaluation and the checkpoint that are due after a step; true if the run ends here for want of gain. Throws
/// Interrupted after the checkpoint of a signal, and CheckpointError where that cannot be saved.
bool evaluate_and_save(Session& session, Pace& pace, double share_before) {
  const auto begin = Clock::now();
  const auto& state = session.state;
  const int64_t every = session.config.checkpoint.every;
  note_due(session, share_before);
  const bool evaluates = state.held_out_due;
  const bool stops = !evaluate_due(session);
  if (!state.at_words.empty()) save_milestone(session);
  if (stops || (is_within_budget(session) && every > 0 && state.step % every == 0)) save(session, stops);
  pace.pause += seconds_since(begin);
  if (stops) stop(session);
  return evaluates && patience_is_over(session);
}

/// Trains to the end of the phase or of the budget; true if the run ends here for want of gain.
bool train_phase(Session& session, Pace& pace) {
  const int64_t rows = session.step_size.batch_size;
  Loader loader([&](uint64_t n) { return session.collator.batch(n * static_cast<uint64_t>(rows), rows); },
                session.state.sequences / static_cast<uint64_t>(rows), session.config.train.workers);
  while (is_within_budget(session) && !phase_is_over(session)) {
    const double share_before = used_share(session.config.train.budget, usage(session));
    if (train_step(session, loader, pace) && evaluate_and_save(session, pace, share_before)) return true;
  }
  return false;
}

void loop(Session& session) {
  if (interrupted) stop(session);  // while it was loading: nothing is to be saved
  if (!evaluate_due(session)) leave_step(session);
  if (patience_is_over(session)) {  // the run had stopped when it was saved
    session.stopped_by = "patience";
    return;
  }
  const auto& state = session.state;
  Pace pace{.seconds_before = state.seconds, .seconds_at_log = state.seconds, .tokens_at_log = state.tokens};
  bool stops = false;
  try {
    while (is_within_budget(session) && !stops) {
      begin_due_phase(session);
      stops = train_phase(session, pace);
    }
  } catch (const DataError& error) {  // lost tokens, which no step has used
    if (state.step == 0) throw;
    save(session, /*must=*/true);
    fail<DataError>(error.what(), "; step ", state.step, " is saved, `cloze pretrain --run ", session.options.run,
                    " --resume` goes on from it");
  }
  if (stops) session.stopped_by = "patience";
  end_progress();
}

// -- After the last step --------------------------------------------------------------------------------------------

PretrainReport report_of(const Session& session, int64_t resumed_at) {
  const auto& state = session.state;
  const auto baseline = first_unigram(session);
  return {.resumed_at = resumed_at,
          .steps = state.step,
          .tokens = state.tokens,
          .seconds = state.seconds,
          .tokens_per_second = static_cast<double>(state.tokens) / std::max(state.seconds, 1e-9),
          .train_loss = session.train_loss,
          .held_out = session.held_out,
          .held_out_loss = session.held_out_loss,
          .best_step = state.best_step,
          .unigram_loss = baseline.loss,
          .unigram_accuracy = baseline.accuracy,
          .ledger = full_ledger(session),
          .stopped_by = session.stopped_by};
}

/// The evaluations of the last step. Throws Interrupted after a signal; the next process makes them.
void evaluate_last(Session& session) {
  auto& state = session.state;
  state.held_out_due = state.evaluated_at != state.step;
  state.suites_due = !session.suites.empty() && state.suites_at != state.step;
  try {
    if (state.held_out_due || session.held_out.empty()) evaluate_held_out(session);
    if (state.suites_due || session.suite_results.empty()) answer_suites(session);
  } catch (const Interrupted&) {
    leave_step(session);
  }
}

PretrainReport finish(Session& session, int64_t resumed_at) {
  const auto& state = session.state;
  evaluate_last(session);
  save(session, true);
  session.lock.require_in_place();
  draw_loss(session.options.run, session.config.objectives, first_unigram(session).loss);
  const auto report = report_of(session, resumed_at);
  session.lock.write("summary.json", summary_of(session, report));
  session.lock.write("held_out.json", held_out_file(state.step, state.evaluation_protocol, session.held_out,
                                                    session.measures, session.config.train.batch_size));
  tell_finished(session, report);
  return report;
}

/// Trains the run of a session from where it stands to its end.
PretrainReport train(Session& session) {
  start(session);
  const int64_t resumed_at = session.options.resume ? session.saved_at : -1;
  const bool was_left = session.state.held_out_due || session.state.suites_due;
  loop(session);
  auto report = finish(session, resumed_at);
  report.had_finished = report.steps == resumed_at && !was_left;
  return report;
}

}  // namespace

PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options) {
  validate(config);
  const bool begins = !options.resume && options.branch_from.empty();
  if (begins) refuse_ignored_options(config);
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not given; prepare text with `cloze prepare` and name its folder with --set data.tokens=FOLDER");
  require_memory(config, 0, machine_memory());
  RunLock lock(options.run, options.resume);
  Session session(config, options, lock);
  try {
    return train(session);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    tell_failed(session, error);
    throw;
  }
}

}  // namespace cloze
