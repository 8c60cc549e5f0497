#pragma once
// Replaced token detection.
#include "objectives/generator.h"
#include "objectives/mlm/mlm.h"

namespace cloze {

/// The source of replacement tokens.
enum class ReplaceBy { generator, uniform };
constexpr auto choices(ReplaceBy) {
  return std::array{Choice{ReplaceBy::generator, "generator", "samples from a trained generator"},
                    Choice{ReplaceBy::uniform, "uniform", "uniform over the vocabulary"}};
}

/// The embeddings that generator and discriminator share.
enum class EmbeddingTie { all, tables, none };
constexpr auto choices(EmbeddingTie) {
  return std::array{Choice{EmbeddingTie::all, "all", "the tables and the norm"},
                    Choice{EmbeddingTie::tables, "tables", "the token and position tables"},
                    Choice{EmbeddingTie::none, "none"}};
}

/// The tokens that the discriminator classifies.
enum class DiscriminatorPositions { all, masked };
constexpr auto choices(DiscriminatorPositions) {
  using enum DiscriminatorPositions;
  return std::array{Choice{all, "all"},
                    Choice{masked, "masked", "those that the generator filled, as in ELECTRA 15% of the paper"}};
}

/// Replaced token detection: a small generator fills masked positions, and the model predicts which tokens were
/// replaced. Source: Clark et al. 2020, section 2 (arXiv 2003.10555); google-research/electra, run_pretraining.py.
/// Differs: masked positions are drawn without replacement, so that no position gets two samples.
struct RtdConfig final : KindOf<RtdConfig> {
  static constexpr const char* kind = "rtd";
  RtdConfig() {
    weight = 50;
    mlm.like = "electra";
    mlm.mask_prob = 0.85;  // as the preset has them
    mlm.random_prob = 0;
  }
  ReplaceBy replace_by = ReplaceBy::generator;
  double generator_hidden_size = 0.25;
  double generator_layers = 1.0;
  double generator_weight = 1.0;
  EmbeddingTie tie = EmbeddingTie::all;
  DiscriminatorPositions positions = DiscriminatorPositions::all;
  double temperature = 1.0;
  int64_t generator_steps = 0;
  MlmConfig mlm{};
  /// Only the generator trains in optimizer step `step` + 1.
  bool generator_only(int64_t step) const { return step < generator_steps; }

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool predicts_tokens() const override { return false; }
  bool has_same_losses(int64_t a, int64_t b) const override {
    return active(a) == active(b) && generator_only(a) == generator_only(b);
  }
  bool replaces_tokens() const override { return true; }
  bool is_of_network(const std::string& option) const override { return !option.starts_with("mlm."); }
  std::optional<Generator> generator(const ModelConfig& model) const override;
  std::vector<MaskingPart> maskings() const override { return mlm.maskings(); }
  int64_t versions() const override { return mlm.dupe_factor; }
  /// That of the discriminator; of a run with a generator also its forms.
  std::vector<ScoringForm> forms(const BackboneConfig& model) const override;
  const char* rate_key() const override { return "mlm.mlm_probability"; }
  /// The same networks, all tokens.
  ObjectiveConfig standard_form() const override;
};

template <class V>
void describe(V& v, RtdConfig& c) {
  describe_terms(v, c, "factor of the discriminator's loss in the sum");
  v("replace_by", c.replace_by, "the source of replacement tokens");
  v("generator_hidden_size", c.generator_hidden_size,
    "width of the generator as a share of hidden_size; heads and intermediate_size follow", in_range(0.01, 4));
  v("generator_layers", c.generator_layers, "layers of the generator as a share of num_hidden_layers",
    in_range(0.01, 4));
  v("generator_weight", c.generator_weight, "factor of the generator's loss in the sum", in_range(0, 1e6));
  v("tie", c.tie, "embeddings that generator and discriminator share");
  v("positions", c.positions, "the tokens that the discriminator classifies in training");
  v("temperature", c.temperature, "sampling temperature of the generator", in_range(0.01, 100));
  v("generator_steps", c.generator_steps,
    "two stages: number of steps that only the generator trains; then the discriminator starts from its weights, and "
    "the generator is frozen; 0 = both train jointly",
    at_least(0));
  v("mlm", c.mlm, "the masking of the generator's input");
}

/// The generator of this discriminator, a model of its family. Source: Clark et al. 2020, section 3.2.
ModelConfig generator_of(const RtdConfig& config, const ModelConfig& discriminator);

std::shared_ptr<Objective> make_head(const RtdConfig& config, const HeadContext& in);

}  // namespace cloze
