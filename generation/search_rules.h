#pragma once
// What stands between the scores of a model and the choice of a token: rules that forbid and penalise, and the mass
// that sampling draws from.
#include <limits>

#include "generation/search.h"

namespace cloze {

/// Throws ConfigError for an id of the settings that the model has no score for.
void check_ids(const SearchConfig& config, int64_t vocab);

/// The scores of one row after the rules, in a buffer that is made once.
class ScoreRules {
 public:
  static constexpr float banned = -std::numeric_limits<float>::infinity();  ///< of a token that may not be chosen
  static constexpr float lowest =
      std::numeric_limits<float>::lowest();  ///< the largest score of a row without an allowed token
  static constexpr const char* not_numbers =
      "the model's scores are not finite numbers; its weights are damaged or its training diverged, so use another "
      "checkpoint";

  /// `prompt` tokens stand before what is written.
  ScoreRules(const SearchConfig& config, int64_t vocab, int64_t prompt);
  /// The logits [vocab] after the rules. `ids` [length] is what the row has read.
  float* logits(const float* given, const int64_t* ids, int64_t length);
  /// The log-probabilities [vocab] after the rules, which do not sum to 1 any more; `taken` [n] are the tokens of the
  /// groups before. Throws Error for scores that are not numbers.
  const float* log_probs(const float* given, const int64_t* ids, int64_t length, const int64_t* taken = nullptr,
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

/// The tokens that sampling may draw, in buffers that are made once.
/// Source: top-p: Holtzman et al. 2020, section 3.1; typical: Meister et al. 2022, section 4.
class TokenSampler {
 public:
  struct Kept {
    int32_t id;
    float score, weight, key;  ///< weight: probability but for a factor; key: place in an order
  };

  TokenSampler(const SearchConfig& config, int64_t vocab)
      : c_(config), vocab_(vocab), weights_(static_cast<size_t>(vocab)) {}
  /// The tokens kept of the logits [vocab] after the rules, by id. Throws Error for a row without an allowed token.
  const std::vector<Kept>& keep(float* logits);
  /// The sum of the weights of what was kept.
  double total() const { return total_; }
  /// The token at `u` in [0, 1) of the cumulated weights.
  const Kept& draw(double u) const;

 private:
  float kth_of(const float* x);
  void weigh(const float* x, float least);
  void cut(double mass, bool ties);

  const SearchConfig& c_;
  int64_t vocab_;
  std::vector<float> weights_, heap_;
  std::vector<Kept> kept_;
  double max_ = 0, total_ = 0;
};

}  // namespace cloze
