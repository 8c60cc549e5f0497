#include "models/layers.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

/// Next sentence prediction over the pooled first token.
struct NextSentence final : Objective {
  NextSentence(const NspConfig& c, int64_t hidden_size) : config(c), head(own("head", std::make_shared<Linear>(hidden_size, 2))) {}

  std::string name() const override { return NspConfig::kind; }
  int64_t count(const Batch& batch) const override { return batch.next_sentence_label.numel(); }

  LossPart loss(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto logits = head->forward(backbone.pooled(hidden));   // [B, 2]
    if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
    return {.name = name(),
            .weight = config.weight,
            .sum = at::cross_entropy_loss(logits, batch.next_sentence_label, {}, at::Reduction::Sum),
            .count = count(batch),
            .correct = logits.argmax(-1).eq(batch.next_sentence_label).sum().item<int64_t>()};
  }

  std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) override {
    return {{"seq_relationship_logits", head->forward(backbone.pooled(hidden))}};
  }

  NspConfig config;
  std::shared_ptr<Linear> head;
};

}  // namespace

std::shared_ptr<Objective> make_nsp(const NspConfig& config, const ModelConfig& model) {
  return std::visit([&](const auto& m) -> std::shared_ptr<Objective> { return std::make_shared<NextSentence>(config, m.hidden_size); },
                    model);
}

}  // namespace cloze
