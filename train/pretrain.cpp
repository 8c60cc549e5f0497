#include "train/pretrain.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/interrupt.h"
#include "core/log.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "optimizers/optimizer.h"
#include "run/memory.h"
#include "run/process.h"
#include "run/records/loss_curve.h"
#include "train/callbacks/hook_events.h"
#include "train/callbacks/suites.h"
#include "train/loader.h"
#include "train/orders.h"
#include "train/records.h"
#include "train/schedule.h"
#include "train/shares.h"
#include "train/start.h"
#include "train/training.h"

// Of tcmalloc, where the program has it (cli/main.cpp).
extern "C" void MallocExtension_ReleaseFreeMemory() __attribute__((weak));

namespace cloze {

namespace {

constexpr int64_t max_skips = 10;

// -- The loop -------------------------------------------------------------------------------------------------------

/// Factor on the learning rate. A warm-up given in steps counts steps whichever limit ends the run; the total number
/// of steps is then extrapolated from the progress so far.
double rate_factor(const Training& training) {
  const auto& schedule = training.config.schedule;
  const auto [done, total] = budget_progress(training);
  const auto step = static_cast<double>(training.progress.step);
  if (schedule.warmup < 1 || done == step) return schedule_factor(schedule, done, total);
  return schedule_factor(schedule, step, step * (total / done));
}

/// Skips a step whose loss or gradient is not finite, or throws. `skips`: such steps in a row.
void refuse(const Training& training, const std::string& nonfinite, int64_t skips) {
  end_progress();
  const auto& progress = training.progress;
  const auto text = concat(nonfinite, " is not finite at step ", progress.step + 1, " (sequences ", progress.sequences,
                           " to ", progress.sequences + training.step_size.sequences() - 1, ")");
  if (training.config.train.on_nonfinite == OnNonFinite::skip && skips <= max_skips) {
    log_warning("train", text + "; the step is skipped");
    return;
  }
  const auto last = find_checkpoint(training.options.run);
  fail(text, skips > max_skips ? concat(", and so were the ", max_skips, " before it") : "",
       "; no update was made, the last good checkpoint is ", last.empty() ? "none yet" : last,
       "; lower the learning rate, or skip such steps with --set train.on_nonfinite=skip");
}

/// The time of the loop.
struct Pace {
  Clock::time_point start = Clock::now();
  double pause = 0;           ///< seconds of what callbacks did in this process
  double seconds_before = 0;  ///< of training, in earlier processes
  int64_t skips = 0;          ///< steps in a row that were not finite
};

[[noreturn]] void stop_at_signal() { throw Interrupted("stopped between two steps"); }

/// The micro-batches of a step that this process makes.
OwnNumbers own_numbers(const Training& training) {
  const auto& processes = training.processes;
  const auto parts = training.config.train.parts, count = training.step_size.accumulation;
  return {.of_step = count, .own = micro_batches_in(parts_of(processes.rank(), processes.size(), parts), parts, count)};
}

OwnBatches next_batches(Training& training, Loader& loader) {
  const auto waiting = Clock::now();
  const auto numbers = own_numbers(training);
  OwnBatches batches{.of_step = numbers.of_step};
  for (int64_t i = 0; i < numbers.own.size(); ++i) batches.micro_batches.push_back(loader.next());
  training.time_breakdown.data_wait += seconds_since(waiting);
  return batches;
}

/// One optimizer step; false if it was not finite and is skipped. Throws Interrupted if a signal ends it.
bool train_step(Training& training, Loader& loader, Pace& pace) {
  auto& progress = training.progress;
  const double share_before = budget_share(training);
  const auto batches = next_batches(training, loader);
  if (training.config.freeze.gradual)
    thaw_layers(training.stepper->params(), 1 + static_cast<int64_t>(usage(training).epochs));
  const double rate = training.config.optimizer.learning_rate * rate_factor(training);
  auto result = training.stepper->step(batches, progress.step, rate);
  if (!result.complete) stop_at_signal();
  if (!result.finite) refuse(training, result.nonfinite, ++pace.skips);
  progress.sequences += training.step_size.sequences();
  if (!result.finite) return false;
  pace.skips = 0;
  ++progress.step;
  progress.tokens += result.tokens;
  progress.predicted_tokens += result.predicted_tokens;
  progress.flops += result.flops;
  progress.seconds = pace.seconds_before + seconds_since(pace.start) - pace.pause;
  training.last = {std::move(result), rate, share_before};
  return true;
}

/// What is due after a step. Throws Interrupted after a signal.
void after_step(Training& training, Pace& pace) {
  const auto begin = Clock::now();
  for (const auto& callback : training.callbacks) callback->note_due(training, /*at_end=*/false);
  for (const auto& callback : training.callbacks) callback->after_step(training);
  pace.pause += seconds_since(begin);
  if (interrupted) stop_at_signal();
}

bool goes_on(const Training& training) { return is_within_budget(training) && training.stop_reason.empty(); }

/// The batches of the phase, from where the run stands.
std::unique_ptr<Loader> load_phase(const Training& training) {
  const int64_t rows = training.step_size.batch_size;
  return std::make_unique<Loader>(
      [&, rows](uint64_t n) { return training.collator.step_batches(n * static_cast<uint64_t>(rows), rows); },
      training.progress.sequences / static_cast<uint64_t>(rows), training.config.train.workers, own_numbers(training));
}

/// Trains to the end of the phase or of the run.
void train_phase(Training& training, Pace& pace) {
  const auto loader = load_phase(training);
  while (goes_on(training) && !phase_is_over(training)) {
    give_order(training, Order::step);
    if (train_step(training, *loader, pace)) after_step(training, pace);
  }
}

/// Trains to the end of the run; after lost tokens, which no step has used, it is saved.
void loop(Training& training, Checkpoints& checkpoints) {
  const auto& progress = training.progress;
  Pace pace{.seconds_before = progress.seconds};
  try {
    while (goes_on(training)) {
      begin_due_phase(training);
      train_phase(training, pace);
    }
  } catch (const DataError& error) {
    if (progress.step == 0) throw;
    checkpoints.save_step(training, /*must=*/true);
    fail<DataError>(error.what(), "; step ", progress.step, " is saved, `cloze pretrain --run ", training.options.run,
                    " --resume` goes on from it");
  }
  end_progress();
}

/// What another process does by the orders of the first.
class Follower {
 public:
  explicit Follower(Training& training) : training_(training) {}

  void run() {
    for (auto order = next_order(training_); order != Order::end; order = next_order(training_)) {
      const double before = training_.processes.seconds_waited();
      try {
        obey(order);
      } catch (const Interrupted&) {  // all know of it, and the first one saves the run
      }
      if (order != Order::step) training_.between_steps += training_.processes.seconds_waited() - before;
    }
  }

 private:
  void obey(Order order) {
    switch (order) {
      case Order::step:
        return step();
      case Order::measure:
        if (!losses_) losses_ = std::make_unique<HeldOutLosses>(training_);
        return losses_->measure(training_);
      case Order::save:
        return training_.stepper->collect();
      case Order::end:
        return;
    }
  }

  void step() {
    if (!loader_ || phase_is_over(training_)) {
      loader_.reset();
      begin_due_phase(training_);
      loader_ = load_phase(training_);
    }
    train_step(training_, *loader_, pace_);
  }

  Training& training_;
  Pace pace_{};
  std::unique_ptr<Loader> loader_{};
  std::unique_ptr<HeldOutLosses> losses_{};
};

// -- From the beginning to the end ----------------------------------------------------------------------------------

PretrainReport report_of(const Training& training, const Callbacks& callbacks) {
  const auto& progress = training.progress;
  const auto& restored = callbacks.checkpoints.restored();
  PretrainReport report{.resumed_at = training.options.resume && restored ? restored->step : -1,
                        .steps = progress.step,
                        .tokens = progress.tokens,
                        .seconds = progress.seconds,
                        .tokens_per_second = static_cast<double>(progress.tokens) / std::max(progress.seconds, 1e-9),
                        .train_loss = training.last.result.loss,
                        .time_breakdown = full_time_breakdown(training),
                        .stopped_by = training.stop_reason.empty() ? "budget" : training.stop_reason};
  for (const auto& callback : training.callbacks) callback->conclude(training, report);
  return report;
}

/// Writes what a run says of itself when it is finished.
PretrainReport conclude(Training& training, const Callbacks& callbacks) {
  auto report = report_of(training, callbacks);
  training.lock->require_in_place();
  draw_loss(training.options.run, training.config.objectives, report.unigram_loss);
  training.write("summary.json", summary_of(training, report, callbacks.log.losses()));
  if (!report.suites.empty()) training.write("suites.json", suites_file(report.steps, report.suites));
  training.write("held_out.json", callbacks.held_out.file(training));
  training.tell(
      "finished",
      {{"held_out_loss", report.held_out_loss}, {"best_step", report.best_step}, {"stopped_by", report.stopped_by}});
  return report;
}

/// Trains a run from where it stands to its end.
PretrainReport train(Training& training) {
  const auto callbacks = prepare(training);
  share_start(training);
  const bool was_left = callbacks.held_out.is_due() || callbacks.suites.is_due();
  try {
    training.parts.before_steps(training);
    for (const auto& callback : training.callbacks) callback->begin(training);
    if (interrupted) stop_at_signal();
    if (MallocExtension_ReleaseFreeMemory) MallocExtension_ReleaseFreeMemory();  // what reading rows and weights took
    loop(training, callbacks.checkpoints);
    for (const auto& callback : training.callbacks) callback->note_due(training, /*at_end=*/true);
    for (const auto& callback : training.callbacks) callback->finish(training);
    give_order(training, Order::end);
  } catch (const Interrupted&) {  // the next process makes again what the signal has ended: a step, or what is due
    if (training.progress.step > 0) callbacks.checkpoints.save_step(training, /*must=*/true);
    give_order(training, Order::end);
    end_progress();
    throw Interrupted(concat("stopped at step ", training.progress.step, "; continue with `cloze pretrain --run ",
                             training.options.run, " --resume`"));
  }
  auto report = conclude(training, callbacks);
  report.had_finished = report.steps == report.resumed_at && !was_left;
  return report;
}

/// Trains as another process than the first.
void train_with_first(Training& training) {
  prepare_to_follow(training);
  share_start(training);
  go_on_from_progress(training);
  try {
    training.parts.before_steps(training);
  } catch (const Interrupted&) {  // the first step tells all of it
  }
  Follower(training).run();
}

bool begins(const PretrainOptions& options) { return !options.resume && options.branch_from.empty(); }

/// The parts of a step: those of a run that goes on, and of one that begins without as many as processes.
int64_t parts_for(const RunConfig& config, const PretrainOptions& options, int64_t processes) {
  const auto before = options.run + "/run.yaml";
  const bool goes_on = options.resume && std::filesystem::exists(before);
  if (config.train.parts > 1 || options.overwrite_config || !options.branch_from.empty()) return config.train.parts;
  if (goes_on) return decode<RunConfig>(load_run_config(before)).train.parts;
  if (processes > 1)
    log_info("train", concat("train.parts is ", processes, ", as many as processes, and stays so however many go on"));
  return processes;
}

/// The config with the parts that all processes of the run know. Throws ConfigError where these are too few.
RunConfig with_parts(RunConfig config, const PretrainOptions& options, Communicator& processes) {
  const auto size = processes.size();
  const auto own = processes.is_first() ? parts_for(config, options, size) : 0;
  config.train.parts = std::stoll(processes.broadcast_text(concat(own)));
  require<ConfigError>(config.train.parts >= size, "train.parts is ", config.train.parts, ", and ", size,
                       " processes cannot each have a part of a step; start ", config.train.parts,
                       " at most, or begin a new run with --set train.parts=", size);
  return config;
}

void tell_failed(const Training& training, const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  training.tell("failed", {{"message", error.what()}, {"exit_code", own ? own->exit_code() : 1}});
}

}  // namespace

PretrainReport pretrain(const RunConfig& run_config, const PretrainOptions& options, const TrainingParts& parts,
                        Communicator& processes) {
  const auto config = with_parts(run_config, options, processes);
  validate(config);
  if (begins(options)) refuse_ignored_options(config);
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not given; prepare text with `cloze prepare` and name its folder with --set data.tokens=FOLDER");
  require_teacher(config.distil);
  require_memory(config, 0, memory_for(config));
  std::optional<RunLock> lock;
  if (processes.is_first()) lock.emplace(options.run, options.resume);
  Training training(config, options, parts, processes, lock ? &*lock : nullptr);
  if (!processes.is_first()) {
    train_with_first(training);
    return {};
  }
  training.add(std::make_unique<HookEvents>(training));
  try {
    return train(training);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    tell_failed(training, error);
    throw;
  }
}

}  // namespace cloze
