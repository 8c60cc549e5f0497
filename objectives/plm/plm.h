#pragma once
// Permutation language modelling.
#include "objectives/kind.h"

namespace cloze {

/// Permutation language modelling: chosen tokens are predicted in a random order, each from the tokens that are not
/// chosen and the chosen ones before it in that order. Rows carry mems if model.mem_len is set, and are segment pairs
/// if data.packing is segment_pair. Source: Yang et al. 2019, sections 2.2 to 2.4 (arXiv 1906.08237); defaults of
/// zihangdai/xlnet's README, XLNet-Large.
struct PlmConfig final : KindOf<PlmConfig>, NextTokenTerms {
  static constexpr const char* kind = "plm";
  std::string like;
  int64_t num_predict = 0;
  int64_t perm_size = 0;
  int64_t mask_alpha = 6;
  int64_t mask_beta = 1;
  int64_t max_ngram = 5;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  const NextTokenTerms* next_token() const override { return this; }
  bool makes_rows() const override { return true; }
  bool makes_pairs() const override { return true; }
  bool fills_masks() const override { return true; }
  bool draws_lengths() const override { return true; }
  std::vector<ScoringForm> forms(const BackboneConfig&) const override { return {ScoringForm::likelihood}; }
};
template <class V>
void describe(V& v, PlmConfig& c) {
  v.like(
      c, "the orders and targets of a published implementation",
      {{"xlnet",
        {{"num_predict", "85"}, {"perm_size", "256"}, {"mask_alpha", "6"}, {"mask_beta", "1"}, {"max_ngram", "5"}}}});
  describe_next_token(v, c);
  v("num_predict", c.num_predict, "maximum number of predicted tokens in a sequence; 0 = a sixth of the tokens",
    at_least(0));
  v("perm_size", c.perm_size, "size of a permuted chunk of tokens; 0 = the whole sequence", at_least(0));
  v("mask_alpha", c.mask_alpha, "a span of k tokens is chosen within a context of k mask_alpha / mask_beta",
    in_range(1, 1 << 20));
  v("mask_beta", c.mask_beta, "the divisor in that context length", in_range(1, 1 << 20));
  v("max_ngram", c.max_ngram, "maximum span length [tokens]; P(k) is proportional to 1/k", in_range(1, 64));
}

/// The number of predicted tokens that a row of `length` tokens asks for.
inline int64_t wanted_predictions(const PlmConfig& plm, int64_t length) {
  return plm.num_predict > 0 ? plm.num_predict : std::max<int64_t>(1, length / 6);
}

/// Throws ConfigError for a model without a query stream.
std::shared_ptr<Objective> make_head(const PlmConfig& config, const HeadContext& in);
std::unique_ptr<RowMaker> make_rows(const PlmConfig& config, const RowContext& context);

}  // namespace cloze
