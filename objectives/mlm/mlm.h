#pragma once
// Masked language modelling.
#include "objectives/kind.h"
#include "objectives/masking_config.h"

namespace cloze {

/// Masked language modelling: some tokens are chosen, masked, and predicted.
/// Source: Devlin et al. 2019, section 3.1 (arXiv 1810.04805).
struct MlmConfig final : KindOf<MlmConfig>, ZLoss, Masking, StaticMasking {
  static constexpr const char* kind = "mlm";
  std::vector<MaskingPart> mixture;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  /// The rules of its maskings alone; `name` is its key path.
  void check_maskings(const std::string& name, const ObjectiveSetting& in, Constraints& constraints) const;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool fills_masks() const override { return true; }
  /// Its masking, or those of its mixture.
  std::vector<MaskingPart> maskings() const override;
  int64_t versions() const override { return dupe_factor; }
  std::vector<ScoringForm> forms(const BackboneConfig&) const override { return masked_forms(); }
  const char* rate_key() const override { return "mlm_probability"; }
};

template <class V>
void describe(V& v, MlmConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  describe_z_loss(v, c);
  describe(v, static_cast<Masking&>(c));
  v.parts("mixture", c.mixture, static_cast<const Masking&>(c),
          "maskings of which each row draws one: a list with `share` and the keys that differ from those above, `like` "
          "included; [] = all rows use the keys above");
  describe_static_masking(v, c);
}

std::shared_ptr<Objective> make_head(const MlmConfig& config, const HeadContext& in);

}  // namespace cloze
