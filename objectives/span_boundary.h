#pragma once
// The span boundary objective.
#include "objectives/terms.h"

namespace cloze {

/// Span boundary objective: each token of a run of predicted ones, from the two hidden states beside the run and its
/// place in it. Source: Joshi et al. 2020, section 3.2 (arXiv 1907.10529); facebookresearch/SpanBERT, pair_bert.py.
/// Differs: the loss is a mean over targets (there their number + 1).
struct SboConfig : ObjectiveTerms {
  static constexpr const char* kind = "sbo";
  int64_t max_pair_targets = 15;
  int64_t position_embedding_size = 200;
};

template <class V>
void describe(V& v, SboConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("max_pair_targets", c.max_pair_targets, "tokens of a run that are predicted; those behind them are not",
    in_range(1, 1 << 20));
  v("position_embedding_size", c.position_embedding_size, "width of the embedding of a token's place in its run",
    in_range(1, 1 << 18));
}

}  // namespace cloze
