#pragma once
// Models with known scores, without a network, for tests of search.
#include <vector>

#include "tests/support/catch.h"
#include "inference/generation/search.h"

namespace cloze {

using Ids = std::vector<int64_t>;
using Prompts = std::vector<Ids>;

/// A model whose logits are a hash of all tokens of a row. Its state is only the hash, so that a wrong origin changes
/// the result.
struct Fake : NextTokenModel {
  int64_t size, eos = 2;
  uint64_t seed;
  float sharp, bias;  // logits lie in [-4, 4) * sharp, that of eos has `bias` added; all exact in float
  int64_t rows_each = 1;
  std::vector<uint64_t> state;
  std::vector<float> out;
  std::vector<Ids> fed;

  Fake(int64_t vocabulary, uint64_t model_seed, float sharpness, float eos_bias)
      : size(vocabulary), seed(model_seed), sharp(sharpness), bias(eos_bias) {}

  static uint64_t finalise(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  static uint64_t read(uint64_t h, int64_t token) { return finalise(h + static_cast<uint64_t>(token) + 1); }
  float logit(uint64_t h, int64_t v) const {
    const auto bits = static_cast<int64_t>(finalise(h ^ (static_cast<uint64_t>(v) * 0x9E3779B97F4A7C15 + 77)) >> 40);
    return static_cast<float>(bits - (1 << 23)) / static_cast<float>(1 << 21) * sharp + (v == eos ? bias : 0);
  }
  void start(const Prompts& prompts, int64_t rows) {
    rows_each = rows;
    state.clear(), fed.clear();
    for (const auto& prompt : prompts) {
      uint64_t h = seed;
      for (size_t i = 0; i + 1 < prompt.size(); ++i) h = read(h, prompt[i]);
      state.insert(state.end(), static_cast<size_t>(rows), h);
    }
    out.resize(state.size() * static_cast<size_t>(size));
  }
  int64_t vocab() const override { return size; }
  const float* step(const Ids& tokens, const Ids& origins) override {
    REQUIRE(tokens.size() == state.size());
    REQUIRE((origins.empty() || origins.size() == state.size()));
    fed.push_back(tokens);
    const auto before = state;
    for (size_t row = 0; row < state.size(); ++row) {
      const size_t from = origins.empty() ? row : static_cast<size_t>(origins[row]);
      REQUIRE(from / static_cast<size_t>(rows_each) == row / static_cast<size_t>(rows_each));
      state[row] = read(before[from], tokens[row]);
      for (int64_t v = 0; v < size; ++v)
        out[row * static_cast<size_t>(size) + static_cast<size_t>(v)] = logit(state[row], v);
    }
    return out.data();
  }
};

inline std::vector<std::vector<GeneratedIds>> run(Fake model, const Prompts& prompts, const SearchConfig& config,
                                                  const std::vector<uint64_t>& numbers = {}) {
  model.start(prompts, rows_of_prompt(config));
  return search(model, prompts, config, {}, numbers);
}

inline std::vector<float> random_logits(int64_t n, uint64_t seed, float scale) {
  std::vector<float> x;
  for (int64_t v = 0; v < n; ++v) x.push_back(Fake(n, seed, scale, 0).logit(seed, v));
  return x;
}

/// The same scores for every row and step.
struct Fixed : NextTokenModel {
  std::vector<float> scores, out;
  explicit Fixed(std::vector<float> given) : scores(std::move(given)) {}
  int64_t vocab() const override { return static_cast<int64_t>(scores.size()); }
  const float* step(const Ids& tokens, const Ids&) override {
    out.clear();
    for (size_t i = 0; i < tokens.size(); ++i) out.insert(out.end(), scores.begin(), scores.end());
    return out.data();
  }
};

}  // namespace cloze
