#pragma once
// What the span boundary objective predicts of a batch.
#include "objectives/batch.h"

namespace cloze {

/// The targets of the span boundary objective: the tokens of each run of predicted positions, at most `max_targets` per
/// run. A run next to [CLS] or [SEP] has no targets. Source: facebookresearch/SpanBERT, fairseq/data/masking.py,
/// span_masking.
struct SpanTargets {
  std::vector<int64_t> left, right;  ///< flat indices into [B T] of the tokens next to the run
  std::vector<int64_t> position;     ///< of the token in its run, from 0
  std::vector<int64_t> prediction;   ///< index of the token in Batch::positions
};
/// The targets of a batch whose rows are [CLS] text [SEP], or [CLS] A [SEP] B [SEP].
SpanTargets span_targets(const Batch& batch, int64_t max_targets);

}  // namespace cloze
