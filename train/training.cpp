#include "train/training.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "objectives/generative_rows.h"
#include "run/config_io.h"
#include "run/evaluation_protocol.h"
#include "run/open_tokens.h"
#include "run/training_rows.h"

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

Collator training_collator(const RunConfig& config, const TokenStore& store, const RowsStart& start) {
  auto rows = training_rows(config.train, store);
  rows.start = start;
  return {store, config.objectives, config.data, row_streams(config.train), "train", config.model, rows};
}

Training::Training(const RunConfig& given, const PretrainOptions& asked, RunLock& held)
    : options(asked),
      lock(held),
      store(open_tokens(given, "train")),
      held_out_store(open_tokens(given, "valid")),
      config(resolved_config(given, store)),
      collator(training_collator(config_of_phase(config, 0), store, {})),
      step_size{config.train.batch_size, config.train.accumulation, processes.size} {}

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
  if (!processes.writes()) return;
  lock.require_in_place();
  metrics->write(row);
}

void Training::write(const std::string& name, const std::string& content) {
  if (processes.writes()) lock.write(name, content);
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

TimeBreakdown full_ledger(const Training& training) {
  TimeBreakdown all = training.ledger;
  const auto& steps = training.stepper->ledger;
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
  const auto last = find_checkpoint(training.options.run);
  fail<Diverged>(warning, "; the run ends here, as train.on_divergence says, and its newest checkpoint is ",
                 last.empty() ? "none" : last);
}

}  // namespace cloze
