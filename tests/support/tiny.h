#pragma once
// A synthetic language, and minimal configs that learn it.
#include <string>

#include "core/random.h"
#include "data/prepare/prepare.h"
#include "models/families/bert.h"
#include "tests/support/temp_dir.h"
#include "run/config/config.h"

/// Documents of sentences in which each word determines the next: word k is followed by word (3 k + 1) mod 16. A masked
/// word between two others has entropy 0; by unigram frequency it has ln 16.
inline std::string synthetic_text(int documents, int sentences) {
  auto stream = cloze::Rng(11).stream("language");
  std::string text;
  for (int d = 0; d < documents; ++d) {
    for (int s = 0; s < sentences; ++s) {
      auto word = stream.below(16);
      for (int k = 0; k < 8; ++k, word = (3 * word + 1) % 16)
        text += "w" + std::string(1, static_cast<char>('a' + word)) + (k < 7 ? " " : "\n");
    }
    text += "\n";
  }
  return text;
}

/// A family of one layer, at the size of `tiny_run`.
template <class Model>
Model tiny_model() {
  Model model;
  model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64,
  model.max_position_embeddings = 32;
  return model;
}

/// Prepares the synthetic corpus in `dir` and returns a config that trains on it in seconds.
inline cloze::RunConfig tiny_run(const TempDir& dir, int64_t steps) {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c < 'a' + 16; ++c) vocabulary += std::string("w") + c + "\n";
  cloze::PrepareOptions options;
  options.inputs = {dir.write("text.txt", synthetic_text(60, 12))};
  options.tokenizer = dir.write("vocab.txt", vocabulary);
  options.out = dir / "tokens";
  options.format = cloze::TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  if (!std::filesystem::exists(options.out)) cloze::prepare(options);
  cloze::RunConfig config;
  auto& model = *cloze::as<cloze::BertConfig>(config.model);
  model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64,
  model.max_position_embeddings = 32;
  config.data.tokens = options.out;
  config.data.max_seq_length = 32;
  config.optimizer.learning_rate = 3e-3;
  config.train.batch_size = 8;
  config.train.threads = 2;
  config.train.budget.steps = steps;
  config.evaluation.every = 0;
  config.evaluation.sequences = 64;
  config.checkpoint.every = 0;
  config.checkpoint.log_every = 1;
  return config;
}
