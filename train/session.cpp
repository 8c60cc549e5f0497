#include "train/session.h"

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

Session::Session(const RunConfig& given, const PretrainOptions& asked, RunLock& held)
    : options(asked),
      lock(held),
      store(open_tokens(given, "train")),
      held_out_store(open_tokens(given, "valid")),
      config(resolved_config(given, store)),
      collator(training_collator(config_of_phase(config, 0), store, {})),
      step_size{config.train.batch_size, config.train.accumulation},
      measures(held_out_measures(config, held_out_store)),
      hook(asked.hook) {}

MadeBy made_by(const Session& session) {
  return {.config = to_yaml(session.config), .tokenizer = session.store.tokenizer().fingerprint()};
}

Usage usage(const Session& session) {
  const auto& state = session.state;
  const auto& start = state.phase_start;
  const double epochs = start.epochs + static_cast<double>(state.sequences - start.sequence) /
                                           static_cast<double>(session.collator.size());
  return {.steps = static_cast<double>(state.step),
          .tokens = static_cast<double>(state.tokens),
          .predicted_tokens = static_cast<double>(state.predicted_tokens),
          .words = epochs * static_cast<double>(session.store.train_words().value_or(0)),
          .epochs = epochs,
          .flops = state.flops,
          .minutes = state.seconds / 60};
}

std::pair<double, double> progress(const Session& session) {
  return nearest_limit(session.config.train.budget, usage(session));
}

Ledger full_ledger(const Session& session) {
  Ledger all = session.ledger;
  const auto& steps = session.stepper->ledger;
  all.forward = steps.forward;
  all.backward = steps.backward;
  all.optimizer = steps.optimizer;
  all.seconds = session.state.seconds - session.uncounted_seconds;
  all.other = std::max(0.0, all.seconds - all.data_wait - all.forward - all.backward - all.optimizer);
  return all;
}

Baseline first_unigram(const Session& session) {
  for (const auto& measure : session.measures)
    if (measure.unigram) return *measure.unigram;
  return {};
}

}  // namespace cloze
