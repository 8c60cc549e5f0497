#pragma once
// Gap sentence generation.
#include "objectives/kind.h"

namespace cloze {

/// How gap sentences are selected.
enum class SentenceChoice { ind_orig, ind_uniq, seq_orig, seq_uniq, random, lead };
constexpr auto choices(SentenceChoice) {
  using enum SentenceChoice;
  return std::array{Choice{ind_orig, "ind-orig"}, Choice{ind_uniq, "ind-uniq"}, Choice{seq_orig, "seq-orig"},
                    Choice{seq_uniq, "seq-uniq"}, Choice{random, "random"},     Choice{lead, "lead"}};
}

/// Gap sentence generation: whole sentences are masked in the encoder's input, and the decoder generates them.
/// Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777).
struct GapSentencesConfig final : GenerativeKind<GapSentencesConfig> {
  static constexpr const char* kind = "gap_sentences";
  std::string like;
  double gap_sentences_ratio = 0.3;
  SentenceChoice choose = SentenceChoice::ind_orig;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool uses_mask() const override { return true; }
  std::optional<SourceTargetLayout> layout() const override;
  std::vector<ScoringForm> forms(const BackboneConfig&) const override { return {ScoringForm::likelihood}; }
  const char* rate_key() const override { return "gap_sentences_ratio"; }
};
template <class V>
void describe(V& v, GapSentencesConfig& c) {
  v.like(c, "the selection of a published model",
         {{"pegasus", {{"gap_sentences_ratio", "0.3"}, {"choose", "ind-orig"}}}});
  describe_next_token(v, c);
  v("gap_sentences_ratio", c.gap_sentences_ratio, "share of the sentences that are masked", in_range(0, 1));
  v("choose", c.choose,
    "selection: highest ROUGE-1 against the rest of the text, scored independently (ind-) or together with those "
    "already selected (seq-), counting repeated tokens each time (-orig) or once (-uniq); random; lead = the first "
    "ones");
}

std::unique_ptr<SourceTargetBuilder> make_builder(const GapSentencesConfig& config, const RowContext& context);

}  // namespace cloze
