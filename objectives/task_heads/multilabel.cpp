#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Multilabel final : HeadKind {
  int64_t count(const Batch& batch) const override { return batch.targets.numel(); }
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool) const override {
    const auto& targets = batch.targets;
    part.counts = logits.gt(0).eq(targets.gt(0.5)).sum();
    fill_by_targets(part, at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::None), targets);
  }
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const MultilabelConfig&) { return std::make_shared<Multilabel>(); }

}  // namespace cloze
