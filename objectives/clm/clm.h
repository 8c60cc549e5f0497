#pragma once
// Causal language modelling.
#include "objectives/kind.h"

namespace cloze {

/// Causal language modelling: each token is predicted from the tokens before it.
/// Source: Radford et al. 2018, section 3.1.
struct ClmConfig final : GenerativeKind<ClmConfig> {
  static constexpr const char* kind = "clm";
  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool continues_source() const override { return true; }
  std::vector<ScoringForm> forms(const BackboneConfig&) const override { return {ScoringForm::likelihood}; }
};
template <class V>
void describe(V& v, ClmConfig& c) {
  describe_next_token(v, c);
  v("transform", c.transform,
    "the head has a dense layer, an activation and a norm before the output embedding, as in BertLMHeadModel; false = "
    "the output embedding only, as in GPT-2");
}

std::unique_ptr<SourceTargetBuilder> make_builder(const ClmConfig& config, const RowContext& context);

}  // namespace cloze
