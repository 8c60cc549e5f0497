#include "train/training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "objectives/generative_rows.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/process.h"
#include "train/records.h"

namespace cloze {

RunConfig resolved_config(RunConfig config, const TokenStore& store) {
  auto& model = backbone_of(config.model);
  const int64_t vocabulary = store.tokenizer().size();
  if (model.vocab_size == 0) model.vocab_size = vocabulary;
  require<ConfigError>(model.vocab_size >= vocabulary, "model.vocab_size is ", model.vocab_size, ", the tokenizer of ",
                       config.data.tokens, " has ", vocabulary, " tokens; raise it, or leave it out");
  take_special_ids(config.model, store.tokenizer().special());
  int64_t longest = config.data.max_seq_length;
  for (const auto& phase : config.train.phases) longest = std::max(longest, phase.max_seq_length);
  require<ConfigError>(longest <= model.max_input_length(), "the tokenizer's padding id is ", model.pad_token_id,
                       ", and positions of ", kind_of(config.model),
                       " start after it; raise model.max_position_embeddings to ", model.pad_token_id + 1 + longest,
                       ", or prepare the text with a tokenizer that has its padding among the first ids (`cloze "
                       "prepare` trains such tokenizers)");
  config.evaluation = resolved_evaluation(config);
  return config;
}

namespace {

StepSize step_size_of(const RunConfig& config, int64_t phase) {
  const auto own = config_of_phase(config, phase);
  return {own.train.batch_size, own.train.accumulation};
}

}  // namespace

Training::Training(const RunConfig& run_config, const PretrainOptions& pretrain_options, const TrainingParts& made_of,
                   Communicator& group, RunLock* held)
    : options(pretrain_options),
      parts(made_of),
      processes(group),
      machine(memory_for(run_config, group.size_here())),
      lock(held),
      store(open_tokens(run_config, "train")),
      held_out_store(open_tokens(run_config, "valid")),
      config(resolved_config(run_config, store)),
      collator(parts.rows(config_of_phase(config, 0), store, {})),
      step_size(step_size_of(config, 0)),
      guessing{.loss = std::log(static_cast<double>(backbone_of(config.model).vocab_size))} {}

void Training::tell(const char* kind, nlohmann::json facts) const {
  std::error_code unknown;  // a working directory that was removed
  facts.update({{"event", kind},
                {"run", std::filesystem::absolute(options.run, unknown).lexically_normal().string()},
                {"step", progress.step},
                {"tokens", progress.tokens},
                {"seconds", progress.seconds},
                {"budget_share", budget_share(*this)}});
  for (const auto& callback : callbacks) callback->hear(facts);
}

void Training::record(const nlohmann::json& row) {
  if (!processes.is_first()) return;
  lock->require_in_place();
  metrics->write(row);
}

void Training::write(const std::string& name, const std::string& content) {
  if (processes.is_first()) lock->write(name, content);
}

MadeBy made_by(const Training& training) {
  return {.config = to_yaml(training.config), .tokenizer = training.store.tokenizer().fingerprint()};
}

Usage usage(const Training& training) {
  const auto& progress = training.progress;
  const auto& start = progress.phase_start;
  const double epochs = start.epochs + static_cast<double>(progress.sequences - start.sequence) /
                                           static_cast<double>(training.collator.size());
  return {.steps = static_cast<double>(progress.step),
          .tokens = static_cast<double>(progress.tokens),
          .predicted_tokens = static_cast<double>(progress.predicted_tokens),
          .words = epochs * static_cast<double>(training.store.train_words().value_or(0)),
          .epochs = epochs,
          .flops = progress.flops,
          .minutes = progress.seconds / 60};
}

std::pair<double, double> budget_progress(const Training& training) {
  return nearest_limit(training.config.train.budget, usage(training));
}

bool is_within_budget(const Training& training) {
  const auto [done, total] = budget_progress(training);
  return done < total;
}

double budget_share(const Training& training) { return used_share(training.config.train.budget, usage(training)); }

TimeBreakdown full_time_breakdown(const Training& training) {
  TimeBreakdown all = training.time_breakdown;
  const auto& steps = training.stepper->time_breakdown;
  all.forward = steps.forward;
  all.backward = steps.backward;
  all.optimizer = steps.optimizer;
  all.seconds = training.progress.seconds - training.uncounted_seconds;
  all.other = std::max(0.0, all.seconds - all.data_wait - all.forward - all.backward - all.optimizer);
  return all;
}

void report_divergence(Training& training, const std::string& warning) {
  if (std::exchange(training.has_diverged, true)) return;
  end_progress();
  const bool stops = training.config.train.on_divergence == OnDivergence::stop;
  training.tell("diverged", {{"message", warning}, {"stops", stops}});
  if (!stops) {
    log_warning("train", warning);
    return;
  }
  auto row = row_of(training);
  row["diverged"] = warning;
  training.record(row);
  const auto last = find_checkpoint(training.options.run);
  fail<Diverged>(warning, "; the run ends here, as train.on_divergence says, and its newest checkpoint is ",
                 last.empty() ? "none" : last);
}

namespace {

/// The first sequence of a step that is not before `epochs` passes over `size` sequences.
uint64_t first_sequence(double epochs, uint64_t size, uint64_t step_sequences) {
  const double steps = std::ceil(epochs * static_cast<double>(size) / static_cast<double>(step_sequences));
  return static_cast<uint64_t>(steps) * step_sequences;
}

}  // namespace

void open_phase(Training& training) {
  const auto& progress = training.progress;
  const auto phases = static_cast<int64_t>(training.config.train.phases.size());
  require<ConfigError>(progress.phase <= phases, training.options.run, ": has begun phase ", progress.phase,
                       " of train.phases, which now has ", phases, "; name as many as before, or start a new run");
  const auto config = config_of_phase(training.config, progress.phase);
  training.step_size = step_size_of(training.config, progress.phase);
  training.collator = training.parts.rows(config, training.store, progress.phase_start);
}

void go_on_from_progress(Training& training) {
  open_phase(training);
  const auto last = std::max<int64_t>(training.progress.step - 1, 0);
  for (const auto& objective : training.network->objectives) objective->set_step(last);
}

bool phase_is_over(const Training& training) {
  const auto& train = training.config.train;
  const auto phase = static_cast<size_t>(training.progress.phase);
  return phase < train.phases.size() && budget_share(training) >= train.phases[phase].from;
}

void begin_due_phase(Training& training) {
  if (!phase_is_over(training)) return;
  auto& progress = training.progress;
  while (phase_is_over(training)) {
    const double epochs = usage(training).epochs;
    ++progress.phase;
    progress.phase_start = {.step = progress.step, .sequence = 0, .epochs = epochs};
    open_phase(training);
    progress.sequences = first_sequence(epochs, training.collator.size(), training.step_size.sequences());
    progress.phase_start.sequence = progress.sequences;
    open_phase(training);  // with the rows counted from there
  }
  end_progress();
  log_info("train", concat("phase ", progress.phase, " of train.phases begins after step ", progress.step, ": ",
                           rows_of_phase(training.config, progress.phase), " a step"));
}

std::string rows_of_phase(const RunConfig& config, int64_t phase) {
  const auto own = config_of_phase(config, phase);
  return concat(own.train.batch_size * own.train.accumulation, " sequences of up to ", own.data.max_seq_length,
                " tokens");
}

std::pair<double, double> nearest_limit(const BudgetConfig& budget, const Usage& usage) {
  std::pair<double, double> nearest{0, 1};
  const auto consider = [&](double done, double total) {
    if (total > 0 && done / total >= nearest.first / nearest.second) nearest = {done, total};
  };
  consider(usage.minutes, budget.minutes);
  consider(usage.flops, budget.flops);
  consider(usage.epochs, budget.epochs);
  consider(usage.words, static_cast<double>(budget.words));
  consider(usage.predicted_tokens, static_cast<double>(budget.predicted_tokens));
  consider(usage.tokens, static_cast<double>(budget.tokens));
  consider(usage.steps, static_cast<double>(budget.steps));
  return nearest;
}

double used_share(const BudgetConfig& budget, const Usage& usage) {
  const auto [done, total] = nearest_limit(budget, usage);
  return std::min(1.0, done / total);
}

}  // namespace cloze
