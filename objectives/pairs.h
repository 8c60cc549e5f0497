#pragma once
// Two segments from one piece of a document: the input of next sentence and sentence order prediction.
#include <vector>

#include "data/sampler.h"
#include "objectives/config.h"

namespace cloze {

/// What is done with two segments that follow each other.
struct PairRule {
  double swap_prob = 0;           ///< A and B change places (sop)
  bool single_sentences = false;  ///< a segment is one sentence
};

/// Segments A and B of a sequence, and whether they are the text's.
struct Pair {
  Span a, b;
  int64_t label = 0;    ///< 0 = B follows A in the text, 1 = it does not
  bool forced = false;  ///< B had to come from another document: the label was not drawn here
};

/// Splits the sentences of `example` into A and B and changes them by the rule, or gives all of them, as A, a B from
/// another document where the example says so, and cuts both to `budget` tokens together. `store` has two documents at
/// least. Source: google-research/bert and google-research/albert, create_pretraining_data.py.
Pair arrange_pair(const PairRule& rule, const TokenStore& store, const Example& example, uint64_t budget,
                  Stream stream);

}  // namespace cloze
