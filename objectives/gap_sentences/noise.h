#pragma once
// Selection of gap sentences. Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777); google-research/pegasus,
// sentence_selection.cc, rouge.cc.
#include <span>

#include "objectives/gap_sentences/gap_sentences.h"
#include "objectives/source_target.h"

namespace cloze {

/// Selects max(1, floor(sentences * gap_ratio)) sentences. Source: the text with `mask1` for each of them. Target:
/// these sentences concatenated, in text order. `eos` ends both. `choose`: random; lead = the first; by ROUGE-1 F1
/// against the rest of the text: ind-orig, ind-uniq = each scored independently, seq-orig, seq-uniq = greedily,
/// together with those selected before (time: selected sentences * tokens); uniq counts a repeated token once. Ties go
/// to the later sentence, as there. A text of one sentence is masked entirely: mask1 eos, and the sentence; a text
/// without tokens gives eos on both sides; empty sentences are skipped. Differs: scores are computed on token ids
/// (there on lower-case words without stop words); `gap_ratio` is not drawn at random, and no noise is added to scores.
SourceTarget gap_sentences(std::span<const std::vector<int64_t>> sentences, double gap_ratio, SentenceChoice choose,
                           int64_t mask1, int64_t eos, Stream& stream);

}  // namespace cloze
