#pragma once
// Logits processors: rules that forbid and penalise tokens, and the truncated distribution that sampling draws from.
#include <limits>

#include "inference/generation/search.h"

namespace cloze {

/// Throws ConfigError for a token id in the settings that is outside the model's vocabulary.
void check_ids(const SearchConfig& config, int64_t vocab);

/// Applies the rules to the scores of one row, in a buffer that is allocated once.
class ScoreRules {
 public:
  static constexpr float banned = -std::numeric_limits<float>::infinity();  ///< score of a forbidden token
  static constexpr float lowest =
      std::numeric_limits<float>::lowest();  ///< the largest score of a row without an allowed token
  static constexpr const char* not_finite =
      "the model's scores are not finite numbers; its weights are damaged or its training diverged, so use another "
      "checkpoint";

  /// `prompt`: the number of tokens before the generated ones.
  ScoreRules(const SearchConfig& config, int64_t vocab, int64_t prompt);
  /// The logits [vocab] after the rules. `ids` [length]: prompt and generated tokens of the row.
  float* logits(const float* raw, const int64_t* ids, int64_t length);
  /// The log-probabilities [vocab] after the rules, not normalised again; `taken` [n]: tokens chosen by earlier groups.
  /// Throws Error for scores that are not finite.
  const float* log_probs(const float* raw, const int64_t* ids, int64_t length, const int64_t* taken = nullptr,
                         int64_t n = 0);

 private:
  bool known(int64_t id) const { return id >= 0 && id < vocab_; }  // an embedding may have more rows than the head
  void apply(const int64_t* ids, int64_t length);
  void only(int64_t id);

  const SearchConfig& c_;
  int64_t vocab_, prompt_;
  std::vector<float> scores_;
  std::vector<uint64_t> seen_;
  uint64_t stamp_ = 0;
};

/// Samples from the truncated distribution, in buffers that are allocated once.
/// Source: top-p: Holtzman et al. 2020, section 3.1; typical: Meister et al. 2022, section 4.
class TokenSampler {
 public:
  struct Kept {
    int32_t id;
    float score, weight, key;  ///< weight: unnormalised probability; key: for sorting
  };

  TokenSampler(const SearchConfig& config, int64_t vocab)
      : c_(config), vocab_(vocab), weights_(static_cast<size_t>(vocab)) {}
  /// The tokens kept of the logits [vocab] after the rules, by id. Throws Error if all tokens are forbidden.
  const std::vector<Kept>& keep(float* logits);
  /// The sum of the weights of the kept tokens.
  double total() const { return total_; }
  /// The token at the fraction `u` in [0, 1) of the cumulative weights.
  const Kept& draw(double u) const;

 private:
  float kth_of(const float* x);
  void weigh(const float* x, float threshold);
  void cut(double mass, bool ties);

  const SearchConfig& c_;
  int64_t vocab_;
  std::vector<float> weights_, heap_;
  std::vector<Kept> kept_;
  double max_ = 0, total_ = 0;
};

}  // namespace cloze
