#pragma once
// The span boundary objective.
#include "objectives/masked_lm.h"

namespace cloze {

/// Span boundary objective: each token of a masked span is predicted from the hidden states of the two tokens next to
/// the span and its position in it. Source: Joshi et al. 2020, section 3.2 (arXiv 1907.10529);
/// facebookresearch/SpanBERT, pair_bert.py. Differs: the loss is the mean over targets (there the sum is divided by
/// their number + 1).
struct SboConfig : ObjectiveTerms, ZLoss {
  static constexpr const char* kind = "sbo";
  int64_t max_pair_targets = 15;
  int64_t position_embedding_size = 200;
  /// The objective whose rows it reads in held-out losses, whatever it was trained with.
  static MlmConfig row_objective() {
    MlmConfig spans;
    spans.like = "spanbert";
    apply_rules(spans, spanbert_masking);
    return spans;
  }
};

template <class V>
void describe(V& v, SboConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  describe_z_loss(v, c);
  v("max_pair_targets", c.max_pair_targets, "maximum number of predicted tokens per span; later ones are skipped",
    in_range(1, 1 << 20));
  v("position_embedding_size", c.position_embedding_size, "width of the embedding of a token's position in its span",
    in_range(1, 1 << 18));
}

void check_limits(const SboConfig& objective, const ObjectiveSetting& in, Limits& limits);
void expect_rows(const SboConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
std::string prediction_words(const SboConfig& objective);

}  // namespace cloze
