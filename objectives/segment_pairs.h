#pragma once
// Segment pairs A and B: the input of next sentence and sentence order prediction.
#include <optional>
#include <vector>

#include "data/config.h"
#include "data/sampling/sampler.h"
#include "objectives/config.h"

namespace cloze {

/// How a pair is made of two consecutive segments.
struct SegmentPairRule {
  double random_next_prob = 0;    ///< share of the pairs whose B is from another document (nsp)
  double swap_prob = 0;           ///< probability that A and B are swapped (sop)
  bool single_sentences = false;  ///< a segment is one sentence
};

/// The segment pairs that the objectives or data.packing need; none: rows have one segment.
std::optional<SegmentPairRule> segment_pair_rule(const Objectives& objectives, RowPacking packing);

/// Segments A and B of a row, and the label of the pair.
struct SegmentPair {
  Span a, b;
  int64_t label = 0;    ///< 0 = B follows A in the text, 1 = it does not
  bool forced = false;  ///< B had to be from another document: the label was not drawn here
};

/// Splits the sentences of `example` into A and B and applies the rule; or, if the example says so, takes all of them
/// as A and a B from another document. Truncates both to `budget` tokens in total. The text of the example needs at
/// least two documents. Source: google-research/bert and google-research/albert, create_pretraining_data.py.
SegmentPair make_segment_pair(const SegmentPairRule& rule, const TokenStore& store, const Example& example,
                              uint64_t budget, Stream stream);

}  // namespace cloze
