#pragma once
// Pairs of source and target texts: translation, summaries, questions with answers.
#include "objectives/kind.h"

namespace cloze {

/// Supervised sequence-to-sequence training on pairs of texts: the decoder generates the second of each.
/// Source: Sutskever et al. 2014, section 2 (arXiv 1409.3215).
struct PairsConfig final : GenerativeKind<PairsConfig> {
  static constexpr const char* kind = "pairs";

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool reads_text_pairs() const override { return true; }
  std::optional<SourceTargetLayout> layout() const override;
  std::vector<ScoringForm> forms(const BackboneConfig&) const override { return {ScoringForm::likelihood}; }
};
template <class V>
void describe(V& v, PairsConfig& c) {
  describe_next_token(v, c);
}

std::unique_ptr<SourceTargetBuilder> make_builder(const PairsConfig& config, const RowContext& context);

}  // namespace cloze
