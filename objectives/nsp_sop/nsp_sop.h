#pragma once
// Next sentence prediction and sentence order prediction.
#include "objectives/kind.h"

namespace cloze {

/// Next sentence prediction: does segment B follow segment A? Label 0 = yes, 1 = B is from another document.
/// Source: Devlin et al. 2019, section 3.1.
struct NspConfig final : KindOf<NspConfig> {
  static constexpr const char* kind = "nsp";
  double random_next_prob = 0.5;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool predicts_tokens() const override { return false; }
  std::optional<PairShares> pairs() const override { return PairShares{.random_next = random_next_prob}; }
  const char* rate_key() const override { return "random_next_prob"; }
};

template <class V>
void describe(V& v, NspConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("random_next_prob", c.random_next_prob, "share of the pairs whose second segment is from another document",
    in_range(0, 1));
}

/// Sentence order prediction: are the segments in text order? Label 0 = yes, 1 = swapped.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); google-research/albert, create_pretraining_data.py.
struct SopConfig final : KindOf<SopConfig> {
  static constexpr const char* kind = "sop";
  double swap_prob = 0.5;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool predicts_tokens() const override { return false; }
  std::optional<PairShares> pairs() const override { return PairShares{.swapped = swap_prob}; }
  const char* rate_key() const override { return "swap_prob"; }
};

template <class V>
void describe(V& v, SopConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("swap_prob", c.swap_prob,
    "share of the pairs that are swapped; a single sentence gets a second segment from another document, with label 1",
    in_range(0, 1));
}

std::shared_ptr<Objective> make_head(const NspConfig& config, const HeadContext& in);
std::shared_ptr<Objective> make_head(const SopConfig& config, const HeadContext& in);

}  // namespace cloze
