#pragma once
// Runs of random weights over a small vocabulary, and their log-probabilities by a slow loop.
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/log.h"
#include "data/tokenizers/byte_bpe.h"
#include "inference/scoring/scorer.h"
#include "objectives/special_tokens.h"
#include "run/run.h"
#include "tests/support/catch.h"
#include "tests/support/families.h"

namespace cloze {

/// Words with pieces that continue them, and `more` tokens, one a line.
inline Tokenizer small_tokenizer(const TempDir& dir, const std::string& more = "") {
  set_log_level(LogLevel::quiet);
  return Tokenizer::open(
             dir.write("vocab.txt",
                       "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\nthe\na\ncat\ndog\nbird\n##s\n##ling\nsee\nsing\n##ing\n"
                       "old\n##er\nand\nby\nriver\n" +
                           more))
      .with_sentinels(3);
}

/// GPT-2's kind of byte-level BPE with one merge, `ca`, and the special tokens of masked models.
inline Tokenizer byte_tokenizer(const TempDir& dir) {
  set_log_level(LogLevel::quiet);
  nlohmann::json vocabulary;
  for (int b = 0; b < 256; ++b) vocabulary[byte_symbol(static_cast<uint8_t>(b))] = b;
  vocabulary["ca"] = 256;
  dir.write("merges.txt", "c a\n");
  return Tokenizer::open(dir.write("vocab.json", vocabulary.dump())).with_special_tokens();
}

/// A run of random weights, as if it had been trained on texts of a tokenizer.
inline LoadedRun random_run(const Tokenizer& tokenizer, const ModelConfig& model, const Objectives& objectives) {
  LoadedRun run;
  run.folder = "runs/random";
  run.tokenizer = tokenizer;
  run.has_tokenizer = true;
  run.config.model = model;
  run.config.objectives = objectives;
  backbone_of(run.config.model).vocab_size = run.tokenizer.size();
  take_special_ids(run.config.model, run.tokenizer.special());
  run.network = std::make_shared<Network>(run.config.model, objectives);
  initialize(collect_params(*run.network), 0.2, false, Rng(3));
  run.network->eval();
  return run;
}

inline LoadedRun random_run(const TempDir& dir, const ModelConfig& model, const Objectives& objectives) {
  return random_run(small_tokenizer(dir), model, objectives);
}

using Ids = std::vector<int64_t>;

inline Tensor row_of(const Ids& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); }

/// The logits of a network's head, [T, V] or [T].
inline Tensor logits_of(const LoadedRun& run, const Inputs& inputs) {
  const at::NoGradGuard no_grad;
  Tensor found;
  for (const auto& [name, tensor] : run.network->outputs(inputs))
    if (name == "logits" || name == "prediction_logits") found = tensor;
  return found[0].to(at::kDouble);
}

/// log softmax(logits)[label], as a loop in double.
inline double log_probability(const Tensor& logits, int64_t label) {
  const auto x = logits.contiguous();
  double highest = -1e300, total = 0;
  for (int64_t i = 0; i < x.numel(); ++i) highest = std::max(highest, x.data_ptr<double>()[i]);
  for (int64_t i = 0; i < x.numel(); ++i) total += std::exp(x.data_ptr<double>()[i] - highest);
  return x.data_ptr<double>()[label] - highest - std::log(total);
}

inline Ids ids_of(const LoadedRun& run, const std::string& text) {
  const auto ids = run.tokenizer.encode(text);
  return {ids.begin(), ids.end()};
}

inline Ids joined(std::initializer_list<Ids> parts) {
  Ids all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline std::vector<double> values_of(const PassageScore& score) {
  std::vector<double> values;
  for (const auto& token : score.tokens) values.push_back(token.log_probability);
  return values;
}

inline void check_values(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(2e-5).epsilon(1e-5));
}

/// The family of `every_family` with this name.
inline FamilyCase family(const std::string& name) {
  for (const auto& one : every_family())
    if (one.name == name) return one;
  throw std::runtime_error("no family " + name);
}

inline LoadedRun random_run(const TempDir& dir, const std::string& name) {
  const auto one = family(name);
  return random_run(dir, one.model, one.objectives);
}

/// Texts of different lengths, with words of several tokens and a character that has no token.
inline const std::vector<std::string> some_texts{
    "the cats see a dog", "singing birds",     "a", "the older dogling sings by the river .", "the cats see a bird",
    "old % river",        "the cats see a dog"};

inline std::vector<Passage> whole(const std::vector<std::string>& texts) {
  std::vector<Passage> passages;
  for (const auto& text : texts) passages.push_back({.scored = text});
  return passages;
}

}  // namespace cloze
