#include "train/pretrain.h"

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "evaluation/held_out_file.h"
#include "run/device.h"
#include "run/folder.h"
#include "run/init.h"
#include "run/loss_curve.h"
#include "run/memory.h"
#include "run/milestones.h"
#include "run/objective_short_form.h"
#include "run/process.h"
#include "train/babylm_rules.h"
#include "train/checkpoints.h"
#include "train/held_out.h"
#include "train/loader.h"
#include "train/origin.h"
#include "train/phases.h"
#include "train/progress_log.h"
#include "train/records.h"
#include "train/run_folder.h"
#include "train/schedule.h"
#include "train/stopwatch.h"
#include "train/suites.h"
#include "train/warnings.h"

namespace cloze {

namespace {

constexpr int64_t max_skips = 10;

// -- Before the first step ------------------------------------------------------------------------------------------

void check_data(const Session& session) {
  // Checking for seconds is cheaper than training for days on damaged text.
  session.store.verify();
  session.held_out_store.verify();
  const auto& config = session.config;
  if (session.store.train_words()) return;
  require<ConfigError>(config.train.budget.words == 0, config.data.tokens,
                       ": was prepared without a count of its words, which train.budget.words needs; prepare the text "
                       "again with --force, or give another budget");
  require<ConfigError>(config.checkpoint.at_words.empty(), config.data.tokens,
                       ": was prepared without a count of its words, which checkpoint.at_words needs; prepare the text "
                       "again with --force, or leave it out");
}

void draw_weights(Session& session) {
  const auto& config = session.config;
  const auto& model = backbone_of(config.model);
  session.network = std::make_shared<Network>(config.model, config.objectives);
  initialize(collect_params(*session.network), model.initializer_range, is_truncated(model.initializer),
             rng_of(config.train, RandomStream::init));
}

void check_branch_point(Session& session, const BranchPoint& branch) {
  session.state = load_state(branch.checkpoint, nullptr);
  open_phase(session);
  const auto used = [&](const BudgetConfig& budget) {
    const auto [done, total] = nearest_limit(budget, usage(session));
    return done / total;
  };
  const auto& config = session.config;
  check_branch(branch, config, session.store, used(branch.config.train.budget), used(config.train.budget));
}

/// Continues from the checkpoint of the origin, if it has one.
void restore_origin(Session& session, const Origin& origin) {
  if (origin.branch)
    restore(session, origin.branch->checkpoint);
  else if (!origin.checkpoint.empty())
    restore(session, origin.checkpoint);
  else if (session.options.resume)
    log_info("train", words(session.options.run, " has no checkpoint: the run starts from the beginning"));
  if (!origin.branch) return;
  session.state.best_step = 0;  // the best is searched for in this run
  session.state.evaluations_without_gain = 0;
}

void open_metrics(Session& session) {
  session.metrics = std::make_unique<Metrics>(session.options.run, session.state.metrics_bytes, session.state.step);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& entry : entries(session.config))
    if (entry.leaf) values.emplace_back(entry.path, entry.value);
  session.metrics->describe(to_yaml(session.config), values);
}

void require_memory_of_phases(const RunConfig& config, double row_tokens) {
  for (int64_t phase = 0; phase <= static_cast<int64_t>(config.train.phases.size()); ++phase)
    require_memory(config_of_phase(config, phase), row_tokens, machine_memory());
}

/// The mean number of tokens in a row of the first phase; those of longer phases have at least as many.
double row_tokens(const Session& session) {
  return static_cast<double>(session.store.num_tokens()) / static_cast<double>(session.collator.size());
}

void start(Session& session) {
  const auto& config = session.config;
  require_memory_of_phases(config, row_tokens(session));
  configure_threads(config.train.threads);
  device_of(config.train.device);
  check_data(session);
  open_suites(session);
  draw_weights(session);
  const auto origin = find_origin(config, session.options);
  if (origin.branch) check_branch_point(session, *origin.branch);
  InitReport initialized;
  if (!origin.initial.empty())
    initialized = init_from(origin.initial, *session.network, session.store.tokenizer(), config.init.probe);
  if (config.init.probe) session.network->freeze_backbone();
  open_run_folder(session, origin.branch);
  if (!origin.initial.empty()) {
    log_info("init", to_text(initialized));
    write_atomic(session.options.run + "/init.json", to_json(initialized).dump(2) + "\n");
  }
  session.stepper = std::make_unique<Stepper>(config, *session.network);
  restore_origin(session, origin);
  session.state.optimizer = name_of(config.optimizer.kind);
  session.state.evaluation_protocol = evaluation_protocol(config, session.held_out_store);
  check_disk(session);
  open_metrics(session);
  if (origin.branch) {
    session.saved_at = -1;
    save(session, true);
  }
  announce(session);
  warn_of_babylm_rules(session);
}

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

/// Warns, once a process, if the losses since the previous line of the log are those of a run that has diverged.
void warn_of_divergence(Session& session) {
  const int64_t vocabulary = backbone_of(session.config.model).vocab_size;
  for (const auto& part : session.state.line.parts) {
    if (session.warned.of_divergence || !is_far_above_guessing(part.loss(), vocabulary)) continue;
    end_progress();
    session.warned.of_divergence = true;
    log_warning("train", divergence_warning("loss of " + part.name, part.loss(), session.state.step, vocabulary));
  }
}

/// Shows the progress line, and writes the line of the log that is due.
void log_step(Session& session, Pace& pace, double rate) {
  auto& state = session.state;
  const bool is_due = state.step % session.config.checkpoint.log_every == 0 || state.step == 1;
  if (!is_due && seconds_since(pace.shown) <= 1) return;
  const double window = state.seconds - pace.seconds_at_log;
  const double speed = window > 0 ? static_cast<double>(state.tokens - pace.tokens_at_log) / window : 0;
  show_progress(session, rate, speed, is_due);
  pace.shown = Clock::now();
  if (!is_due) return;
  record_training(session, rate, speed);
  warn_of_divergence(session);
  state.line = {};
  pace.tokens_at_log = state.tokens;
  pace.seconds_at_log = state.seconds;
}

/// One optimizer step; false if it was not finite and is skipped.
bool train_step(Session& session, Loader& loader, Pace& pace) {
  auto& state = session.state;
  const auto batches = next_batches(session, loader);
  const double rate = session.config.optimizer.learning_rate * rate_factor(session);
  const auto result = session.stepper->step(batches, state.step, rate);
  if (!result.finite) refuse(session, result, ++pace.skips);
  state.sequences += session.step_size.sequences();
  if (!result.finite) return false;
  pace.skips = 0;
  count(session, result, pace);
  count_words(session);
  warn_of_babylm_rules(session);
  log_step(session, pace, rate);
  return true;
}

[[noreturn]] void stop(const Session& session) {
  end_progress();
  throw Interrupted(words("stopped at step ", session.state.step, "; continue with --resume"));
}

/// The evaluation and the checkpoint that are due after a step; true if the run ends here for want of gain. Throws
/// Interrupted after the checkpoint of a signal, and CheckpointError where that cannot be saved.
bool evaluate_and_save(Session& session, Pace& pace, double share_before) {
  const auto begin = Clock::now();
  const auto& state = session.state;
  const int64_t every = session.config.checkpoint.every;
  const bool stops = interrupted;
  const auto [done, total] = progress(session);
  const bool over = done >= total;
  const bool evaluates = !over && evaluation_is_due(session, share_before);
  if (evaluates) evaluate_held_out(session);
  if (!over && suites_are_due(session)) answer_suites(session);
  if (!state.at_words.empty()) save_milestone(session);
  if (stops || (!over && every > 0 && state.step % every == 0)) save(session, stops);
  pace.pause += seconds_since(begin);
  if (stops) stop(session);
  return evaluates && patience_is_over(session);
}

bool is_within_budget(const Session& session) {
  const auto [done, total] = progress(session);
  return done < total;
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
  if (patience_is_over(session)) {  // the run had stopped when it was saved
    session.stopped_by = "patience";
    return;
  }
  if (interrupted) stop(session);  // while it was loading: nothing is to be saved
  const auto& state = session.state;
  Pace pace{.seconds_before = state.seconds, .seconds_at_log = state.seconds, .tokens_at_log = state.tokens};
  bool stops = false;
  while (is_within_budget(session) && !stops) {
    begin_due_phase(session);
    stops = train_phase(session, pace);
  }
  if (stops) session.stopped_by = "patience";
  end_progress();
}

// -- After the last step --------------------------------------------------------------------------------------------

PretrainReport report_of(const Session& session) {
  const auto& state = session.state;
  const auto baseline = first_unigram(session);
  return {.steps = state.step,
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

PretrainReport finish(Session& session) {
  const auto& state = session.state;
  if (state.evaluated_at != state.step || session.held_out.empty()) evaluate_held_out(session);
  answer_suites(session);
  save(session, true);
  draw_loss(session.options.run, session.config.objectives, first_unigram(session).loss);
  const auto report = report_of(session);
  write_summary(session, report);
  write_held_out(session.options.run, state.step, state.evaluation_protocol, session.held_out, session.measures,
                 session.config.train.batch_size);
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
  const RunLock lock(options.run, options.resume);
  Session session(config, options);
  start(session);
  loop(session);
  return finish(session);
}

}  // namespace cloze
