#include <cmath>

#include "core/error.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

/// The LM head: the tied token embedding, or an untied output embedding.
struct NextTokenHead : Layer {
  explicit NextTokenHead(const BackboneConfig& m)
      : scale(m.scale_decoder_outputs ? 1 / std::sqrt(static_cast<double>(m.hidden_size)) : 1) {
    if (!m.tie_word_embeddings)
      decoder = own_param("decoder", {m.vocab_size, m.hidden_size}, Init::weight, Role::embedding);
    const bool fixed_bias =
        m.logits_bias == LogitsBias::fixed && m.is_encoder_decoder();  // none in decoder-only models
    if (fixed_bias || m.logits_bias == LogitsBias::trained)
      bias = own_param("bias", {m.vocab_size}, fixed_bias ? Init::fixed_zero : Init::zero);
  }
  Tensor scaled(const Tensor& hidden) const { return scale == 1 ? hidden : hidden * scale; }
  const Param& table(const Param& token_embedding) const { return decoder.defined() ? decoder : token_embedding; }

  double scale;
  Param decoder, bias;
};

struct NextTokenPrediction final : Objective {
  NextTokenPrediction(const std::string& kind, const NextTokenTerms& t, const BackboneConfig& m)
      : Objective(t), terms(t), kind_name(kind) {
    if (t.transform)
      token_head = own("head", make_token_head(m));
    else
      head = own("head", std::make_shared<NextTokenHead>(m));
  }

  std::string name() const override { return kind_name; }
  std::string head_name() const override { return "lm"; }
  std::vector<LossPart> parts(const Batch& batch) const override {
    return {{.name = kind_name, .weight = terms.weight, .count = batch.positions.numel()}};
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = parts(batch)[0];
    const auto rows = take_rows(hidden.flatten(0, 1), batch.positions);  // [N, D]
    // Held-out losses have no smoothing and no z-loss.
    const LossOptions shape = is_training() ? LossOptions{terms.label_smoothing, terms.z_loss} : LossOptions{};
    fill_by_tokens(part, transformed(rows), table(backbone), bias(), batch.labels, {batch.positions, hidden.size(1)},
                   shape);
    return {part};
  }

  std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) override {
    return {{"logits", linear(transformed(hidden), table(backbone), bias())}};
  }

  Tensor transformed(const Tensor& hidden) const {
    return head ? head->scaled(hidden) : token_head->transformed(hidden);
  }
  const Param& table(const Backbone& backbone) const {
    return head ? head->table(backbone.token_embedding()) : token_head->table(backbone.token_embedding());
  }
  const Param& bias() const { return head ? head->bias : token_head->bias; }

  NextTokenTerms terms;
  std::string kind_name;
  std::shared_ptr<NextTokenHead> head;  // exactly one of the two is set
  std::shared_ptr<TokenHead> token_head;
};

}  // namespace

std::shared_ptr<Objective> make_next_token(const std::string& name, const NextTokenTerms& terms,
                                           const BackboneConfig& model) {
  require<ConfigError>((name == PlmConfig::kind) == model.is_two_stream(),
                       name == PlmConfig::kind
                           ? "objective 'plm' needs a query stream, which only xlnet has; choose model kind: xlnet"
                           : "xlnet predicts by its query stream; choose objective kind: plm");
  require<ConfigError>(model.is_generative() || model.is_two_stream(), "objective '", name,
                       "' needs a generative model; choose gpt2, t5, bart or another decoder, or set "
                       "model.architecture: decoder");
  return std::make_shared<NextTokenPrediction>(name, terms, model);
}

}  // namespace cloze
