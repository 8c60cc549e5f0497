#include "models/heads.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

/// Masked language modelling: the head sees predicted positions only, whatever the length.
struct MaskedLm final : Objective {
  MaskedLm(const MlmConfig& c, const BertConfig& m)
      : config(c),
        head(own("head", std::make_shared<TokenHead>(m.hidden_size, m.hidden_size, m.vocab_size, m.hidden_act, m.layer_norm_eps,
                                                     m.tie_word_embeddings))) {}

  std::string name() const override { return MlmConfig::kind; }
  int64_t count(const Batch& batch) const override { return batch.positions.numel(); }

  LossPart loss(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    LossPart part{.name = name(), .weight = config.weight, .sum = {}, .count = count(batch)};
    const auto rows = take_rows(hidden.flatten(0, 1), batch.positions);   // [N, D]
    part.sum = token_cross_entropy(head->transformed(rows), head->table(backbone.token_embedding()), head->bias, batch.labels, &part.correct);
    return part;
  }

  std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) override {
    return {{"prediction_logits", linear(head->transformed(hidden), head->table(backbone.token_embedding()), head->bias)}};
  }

  MlmConfig config;
  std::shared_ptr<TokenHead> head;
};

}  // namespace

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const ModelConfig& model) {
  return std::visit([&](const BertConfig& m) -> std::shared_ptr<Objective> { return std::make_shared<MaskedLm>(config, m); }, model);
}

}  // namespace cloze
