#pragma once
// Replaced token detection.
#include "objectives/masked_lm.h"

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
struct RtdConfig : ObjectiveTerms {
  static constexpr const char* kind = "rtd";
  static constexpr const char* share_key = "mlm.mlm_probability";
  static constexpr bool predicts_tokens = false;
  RtdConfig() {
    weight = 50;
    mlm.like = "electra";
    apply_rules(mlm, electra_masking);
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
  /// The form in which held-out losses score it: the same networks, all tokens.
  RtdConfig standard_form() const {
    auto standard = *this;
    standard.mlm = RtdConfig{}.mlm;
    standard.positions = DiscriminatorPositions::all;
    return standard;
  }
  /// Only the generator trains in optimizer step `step` + 1.
  bool generator_only(int64_t step) const { return step < generator_steps; }
};

inline std::vector<MaskingPart> maskings_of(const RtdConfig& rtd) { return maskings_of(rtd.mlm); }
inline int64_t dupe_factor_of(const RtdConfig& rtd) { return rtd.mlm.dupe_factor; }

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

void check_limits(const RtdConfig& objective, const ObjectiveSetting& in, Limits& limits);
void expect_rows(const RtdConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
std::string prediction_words(const RtdConfig& objective);

}  // namespace cloze
