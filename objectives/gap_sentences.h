#pragma once
// Gap sentence generation.
#include "objectives/terms.h"

namespace cloze {

/// Which sentences are hidden.
enum class SentenceChoice { ind_orig, ind_uniq, seq_orig, seq_uniq, random, lead };
constexpr auto choices(SentenceChoice) {
  using enum SentenceChoice;
  return std::array{Choice{ind_orig, "ind-orig"}, Choice{ind_uniq, "ind-uniq"}, Choice{seq_orig, "seq-orig"},
                    Choice{seq_uniq, "seq-uniq"}, Choice{random, "random"},     Choice{lead, "lead"}};
}

/// Gap sentences: whole sentences are hidden from the encoder, the decoder writes them.
/// Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777).
struct GapSentencesConfig : NextTokenTerms {
  static constexpr const char* kind = "gap_sentences";
  std::string like;
  double gap_sentences_ratio = 0.3;
  SentenceChoice choose = SentenceChoice::ind_orig;
};
template <class V>
void describe(V& v, GapSentencesConfig& c) {
  v.like(
      c, "choice as in that paper",
      {{"pegasus", [](GapSentencesConfig& m) { m.gap_sentences_ratio = 0.3, m.choose = SentenceChoice::ind_orig; }}});
  describe_next_token(v, c);
  v("gap_sentences_ratio", c.gap_sentences_ratio, "share of the sentences that is hidden", in_range(0, 1));
  v("choose", c.choose,
    "which: those most like the rest by ROUGE-1, each scored alone (ind-) or with those chosen before (seq-), a "
    "repeated token counted each time (-orig) or once (-uniq); random; lead = the first ones");
}

}  // namespace cloze
