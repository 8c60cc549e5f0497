#include "objectives/next_token.h"

#include <cmath>

#include "core/error.h"

namespace cloze {

NextTokenHead::NextTokenHead(const BackboneConfig& m)
    : scale(m.scale_decoder_outputs ? 1 / std::sqrt(static_cast<double>(m.hidden_size)) : 1) {
  if (!m.tie_word_embeddings)
    decoder = own_param("decoder", {m.vocab_size, m.hidden_size}, Init::weight, Role::embedding);
  const bool fixed_bias = m.logits_bias == LogitsBias::fixed && m.is_encoder_decoder();  // none in decoder-only models
  if (fixed_bias || m.logits_bias == LogitsBias::trained)
    bias = own_param("bias", {m.vocab_size}, fixed_bias ? Init::fixed_zero : Init::zero);
}

NextTokenPrediction::NextTokenPrediction(const std::string& kind, const ObjectiveTerms& of_all, const NextTokenTerms& t,
                                         const BackboneConfig& m)
    : Objective(of_all), weight(of_all.weight), terms(t), kind_name(kind) {
  if (t.transform)
    token_head = own("head", make_token_head(m));
  else
    head = own("head", std::make_shared<NextTokenHead>(m));
}

std::vector<LossPart> NextTokenPrediction::parts(const Batch& batch) const {
  return {{.name = kind_name, .weight = weight, .count = batch.positions.numel(), .weights = batch.weights}};
}

Cost NextTokenPrediction::cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const {
  const double transform = token_head ? token_head->transform->multiply_adds() : 0;
  return {.trained =
              total(rows, &RowSizes::predicted) * (transform + static_cast<double>(table(backbone).value().numel()))};
}

void NextTokenPrediction::fill(LossPart& part, const Backbone& backbone, const Tensor& hidden, const Tensor& positions,
                               const Tensor& labels) const {
  const auto rows = take_rows(hidden.flatten(0, 1), positions);  // [N, D]
  // Held-out losses have no smoothing and no z-loss.
  const LossOptions shape = is_training() ? LossOptions{terms.label_smoothing, terms.z_loss} : LossOptions{};
  fill_by_tokens(part, transformed(rows), table(backbone), bias(), labels, {positions, hidden.size(1)}, shape);
}

std::vector<LossPart> NextTokenPrediction::losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) {
  auto part = NextTokenPrediction::parts(batch)[0];
  fill(part, backbone, hidden, batch.positions, batch.labels);
  return {part};
}

NetworkOutputs NextTokenPrediction::outputs(Backbone& backbone, const Tensor& hidden) {
  return {{"logits", linear(transformed(hidden), table(backbone), bias())}};
}

std::optional<VocabularyProjection> NextTokenPrediction::projection(const Backbone& backbone,
                                                                    const Tensor& hidden) const {
  return VocabularyProjection{transformed(hidden), table(backbone), bias()};
}

Tensor NextTokenPrediction::transformed(const Tensor& hidden) const {
  return head ? head->scaled(hidden) : token_head->transformed(hidden);
}

const Param& NextTokenPrediction::table(const Backbone& backbone) const {
  return head ? head->table(backbone.token_embedding()) : token_head->table(backbone.token_embedding());
}

std::shared_ptr<Objective> make_next_token(const std::string& name, const ObjectiveTerms& of_all,
                                           const NextTokenTerms& terms, const BackboneConfig& model) {
  require<ConfigError>(!model.is_two_stream(), "objective '", name, "' does not support model.architecture ",
                       model.architecture, ", which predicts from its query stream; choose objective kind: plm");
  require<ConfigError>(model.is_generative(), "objective '", name, "' needs a generative model; choose ",
                       families_that(&BackboneConfig::is_generative), ", or set model.architecture: decoder");
  return std::make_shared<NextTokenPrediction>(name, of_all, terms, model);
}

}  // namespace cloze
