#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "models/transformer_config.h"
#include "models/layers/cost.h"
#include "objectives/constraints.h"
#include "objectives/rtd/rtd.h"

namespace cloze {

std::string RtdConfig::prediction() const {
  return concat(positions == DiscriminatorPositions::all ? "which tokens are replaced"
                                                         : "which of the filled tokens are replaced",
                replace_by == ReplaceBy::generator ? ", where a generator fills " : ", where random tokens fill ",
                mlm.prediction());
}

void RtdConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  mlm.check_maskings("rtd.mlm", in, constraints);
  constraints.forbid(
      mlm.weight != 1 || mlm.from_step != 0 || mlm.until_step != 0,
      "rtd.mlm is the generator's, which is trained as long as rtd is, with the weight generator_weight; leave "
      "out weight, from_step and until_step of mlm");
  require_bidirectional(kind, in, constraints);
  constraints.forbid(in.backbone().is_decoder(),
                     "rtd needs a bidirectional generator; set model.architecture: encoder");
  const bool same_shape = replace_by == ReplaceBy::generator && generator_hidden_size == 1 && generator_layers == 1 &&
                          tie == EmbeddingTie::none;
  constraints.forbid(
      generator_steps > 0 && !same_shape,
      "rtd.generator_steps: the discriminator starts with the generator's weights, so both need the same "
      "shape and separate embeddings; set replace_by: generator, generator_hidden_size: 1, "
      "generator_layers: 1 and tie: none");
  constraints.forbid(
      generator_steps > 0 && in.ema_decay > 0, "train.ema_decay ", in.ema_decay,
      " averages the weights over steps, and with rtd.generator_steps the discriminator gets other weights in "
      "the middle of the run; set one of them to 0");
}

void RtdConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const {
  expect_masks(maskings(), rows);
  if (positions == DiscriminatorPositions::masked) return;
  for (auto& row : rows) row.read = row.length;
}

std::vector<ScoringForm> RtdConfig::forms(const BackboneConfig& model) const {
  std::vector<ScoringForm> all{ScoringForm::detection};
  if (replace_by == ReplaceBy::generator)
    for (const auto form : mlm.forms(model)) all.push_back(form);
  return all;
}

ObjectiveConfig RtdConfig::standard_form() const {
  auto standard = *this;
  standard.mlm = RtdConfig{}.mlm;
  standard.positions = DiscriminatorPositions::all;
  return standard;
}

std::optional<Generator> RtdConfig::generator(const ModelConfig& model) const {
  if (replace_by != ReplaceBy::generator || !as<TransformerConfig>(model)) return {};
  return Generator{.model = generator_of(*this, model), .objective = mlm, .own_embeddings = tie == EmbeddingTie::none};
}

ModelConfig generator_of(const RtdConfig& config, const ModelConfig& discriminator) {
  ModelConfig generator = discriminator;
  const auto& m = transformer_of(discriminator);
  auto& g = transformer_of(generator);
  const int64_t head_width = m.hidden_size / m.num_attention_heads;
  g.num_attention_heads =
      std::max<int64_t>(1, std::llrint(config.generator_hidden_size * static_cast<double>(m.num_attention_heads)));
  g.hidden_size = g.num_attention_heads * head_width;
  g.intermediate_size = std::max<int64_t>(1, m.intermediate_size * g.hidden_size / m.hidden_size);
  g.num_hidden_layers =
      std::max<int64_t>(1, std::llrint(config.generator_layers * static_cast<double>(m.num_hidden_layers)));
  g.embedding_size = m.embedding_width();
  return generator;
}

}  // namespace cloze
