#pragma once
// The span boundary objective.
#include "objectives/kind.h"

namespace cloze {

/// Span boundary objective: each token of a masked span is predicted from the hidden states of the two tokens next to
/// the span and its position in it. Source: Joshi et al. 2020, section 3.2 (arXiv 1907.10529);
/// facebookresearch/SpanBERT, pair_bert.py. Differs: the loss is the mean over targets (there the sum is divided by
/// their number + 1).
struct SboConfig final : KindOf<SboConfig>, ZLoss {
  static constexpr const char* kind = "sbo";
  int64_t max_pair_targets = 15;
  int64_t position_embedding_size = 200;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool is_of_network(const std::string&) const override { return true; }
  /// Spans of mlm (like: spanbert), whatever it was trained with.
  Objectives row_makers() const override;
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

std::shared_ptr<Objective> make_head(const SboConfig& config, const HeadContext& in);

}  // namespace cloze
