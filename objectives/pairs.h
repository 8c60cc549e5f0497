#pragma once
// Two segments from one piece of a document: the input of next sentence prediction.
#include <vector>

#include "data/sampler.h"
#include "objectives/config.h"

namespace cloze {

/// Segments A and B of a sequence, and whether B is from elsewhere.
struct Pair {
  Span a, b;
  int64_t label = 0;   ///< 0 = B follows A in the text, 1 = B is from another document
};

/// Splits the sentences of `example` into A and B, or takes B from a random place of another document, and cuts both to
/// `budget` tokens together. Held-out text of one document has no other: there B is from another place of it. Source: google-research/bert, create_pretraining_data.py.
/// Differs: sentences that a random B displaces, and those beyond a short target, wait for another epoch instead of the
/// next sequence, so that a sequence is a function of its number.
Pair arrange_pair(const NspConfig& config, const TokenStore& store, const Example& example, uint64_t budget, Stream stream);

}  // namespace cloze
