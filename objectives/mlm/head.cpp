#include "objectives/mlm/mlm.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

/// Masked language modelling: the head runs on predicted positions only.
struct MaskedLm final : Objective {
  MaskedLm(const MlmConfig& c, const BackboneConfig& m)
      : Objective(c), config(c), head(own("head", make_token_head(m))) {}

  std::string name() const override { return MlmConfig::kind; }
  std::vector<LossPart> parts(const Batch& batch) const override {
    return {{.name = name(), .weight = config.weight, .count = batch.positions.numel(), .weights = batch.weights}};
  }

  Tensor read_positions(const Batch& batch) const override { return batch.positions; }
  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    return {.trained = total(rows, &RowSizes::predicted) * head->multiply_adds(backbone.token_embedding())};
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = parts(batch)[0];
    const auto rows = take_rows(hidden.flatten(0, 1), batch.positions);  // [N, D]
    fill_by_tokens(part, head->transformed(rows), head->table(backbone.token_embedding()), head->bias, batch.labels,
                   {batch.positions, hidden.size(1)}, in_training(config, is_training()));
    return {part};
  }

  NetworkOutputs outputs(Backbone& backbone, const Tensor& hidden) override {
    return {
        {"prediction_logits", linear(head->transformed(hidden), head->table(backbone.token_embedding()), head->bias)}};
  }

  std::optional<VocabularyProjection> projection(const Backbone& backbone, const Tensor& hidden) const override {
    return VocabularyProjection{head->transformed(hidden), head->table(backbone.token_embedding()), head->bias};
  }

  MlmConfig config;
  std::shared_ptr<TokenHead> head;
};

}  // namespace

std::shared_ptr<Objective> make_head(const MlmConfig& config, const HeadContext& in) {
  return std::make_shared<MaskedLm>(config, in.base);
}

}  // namespace cloze
