#pragma once
// Next sentence prediction and sentence order prediction.
#include "core/limits.h"
#include "objectives/terms.h"

namespace cloze {

/// Next sentence prediction: does segment B follow segment A? Label 0 = yes, 1 = B is from another document.
/// Source: Devlin et al. 2019, section 3.1.
struct NspConfig : ObjectiveTerms {
  static constexpr const char* kind = "nsp";
  static constexpr const char* share_key = "random_next_prob";
  static constexpr bool classifies_pairs = true;
  static constexpr bool predicts_tokens = false;
  double random_next_prob = 0.5;
  /// Share of the pairs with label 1.
  double label_1_share() const { return random_next_prob; }
};

template <class V>
void describe(V& v, NspConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("random_next_prob", c.random_next_prob, "share of the pairs whose second segment is from another document",
    in_range(0, 1));
}

/// Sentence order prediction: are the segments in text order? Label 0 = yes, 1 = swapped.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); google-research/albert, create_pretraining_data.py.
struct SopConfig : ObjectiveTerms {
  static constexpr const char* kind = "sop";
  static constexpr const char* share_key = "swap_prob";
  static constexpr bool classifies_pairs = true;
  static constexpr bool predicts_tokens = false;
  double swap_prob = 0.5;
  /// Share of the pairs with label 1.
  double label_1_share() const { return swap_prob; }
};

template <class V>
void describe(V& v, SopConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("swap_prob", c.swap_prob,
    "share of the pairs that are swapped; a single sentence gets a second segment from another document, with label 1",
    in_range(0, 1));
}

void check_limits(const NspConfig& objective, const ObjectiveSetting& in, Limits& limits);
void check_limits(const SopConfig& objective, const ObjectiveSetting& in, Limits& limits);
void expect_rows(const NspConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
void expect_rows(const SopConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
std::string prediction_words(const NspConfig& objective);
std::string prediction_words(const SopConfig& objective);

}  // namespace cloze
