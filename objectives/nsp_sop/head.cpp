#include "objectives/objective.h"
#include "objectives/nsp_sop/nsp_sop.h"

namespace cloze {

namespace {

/// Binary classification of a segment pair from the pooled first token: are they consecutive (nsp), in order (sop)?
struct SentencePair final : Objective {
  SentencePair(std::string kind, std::string output_name, const ObjectiveTerms& terms, int64_t hidden_size)
      : Objective(terms),
        kind_name(std::move(kind)),
        output(std::move(output_name)),
        weight(terms.weight),
        head(own("head", std::make_shared<Linear>(hidden_size, 2))) {}

  std::string name() const override { return kind_name; }
  std::vector<LossPart> parts(const Batch& batch) const override {
    return {{.name = kind_name, .weight = weight, .count = batch.pair_label.numel()}};
  }

  Tensor read_positions(const Batch& batch) const override {
    return (at::ones_like(batch.input_ids.select(1, 0)).cumsum(0) - 1) * batch.input_ids.size(1);
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    double sequences = 0;
    for (const auto& row : rows) sequences += row.count;
    return {.trained = sequences * (backbone.pooling_multiply_adds() + head->multiply_adds())};
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = parts(batch)[0];
    auto logits = head->forward(backbone.pooled(hidden));  // [B, 2]
    if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
    const auto losses = at::cross_entropy_loss(logits, batch.pair_label, {}, at::Reduction::None);  // [B]
    const auto rows = at::ones_like(batch.pair_label).cumsum(0) - 1;
    fill_by_answers(part, losses, logits.argmax(-1), batch.pair_label, {rows, 1});
    return {part};
  }

  NetworkOutputs outputs(Backbone& backbone, const Tensor& hidden) override {
    return {{output, head->forward(backbone.pooled(hidden))}};
  }

  std::string kind_name, output;
  double weight;
  std::shared_ptr<Linear> head;
};

}  // namespace

std::shared_ptr<Objective> make_head(const NspConfig& config, const HeadContext& in) {
  return std::make_shared<SentencePair>(NspConfig::kind, "seq_relationship_logits", config, in.base.hidden_size);
}

std::shared_ptr<Objective> make_head(const SopConfig& config, const HeadContext& in) {
  return std::make_shared<SentencePair>(SopConfig::kind, "sop_logits", config, in.base.hidden_size);
}

}  // namespace cloze
