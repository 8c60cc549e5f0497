#pragma once
// Two segments from one piece of a document: the input of next sentence and sentence order prediction.
#include <vector>

#include "data/sampler.h"
#include "objectives/config.h"

namespace cloze {

/// What is done with two segments that follow each other.
struct PairRule {
  double random_next_prob = 0;   ///< B is taken from another document (nsp)
  double swap_prob = 0;          ///< A and B change places (sop)
  bool single_sentences = false; ///< a segment is one sentence
};

/// Segments A and B of a sequence, and whether they are the text's.
struct Pair {
  Span a, b;
  int64_t label = 0;   ///< 0 = B follows A in the text, 1 = it does not
  bool forced = false; ///< a single sentence: the label was not drawn
};

/// Splits the sentences of `example` into A and B, changes them by the rule (a single sentence always gets a random B), and
/// cuts both to `budget` tokens together.
/// Source: google-research/bert and google-research/albert, create_pretraining_data.py.
/// Differs: sentences that a random B displaces, and those beyond a short target, wait for another epoch instead of the
/// next sequence, so that a sequence is a function of its number.
Pair arrange_pair(const PairRule& rule, const TokenStore& store, const Example& example, uint64_t budget, Stream stream);

}  // namespace cloze
