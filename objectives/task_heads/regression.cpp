#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Regression final : HeadKind {
  explicit Regression(const RegressionConfig& config) : scale(config.scale) {}
  int64_t count(const Batch& batch) const override { return batch.targets.numel(); }
  bool has_accuracy() const override { return false; }
  Tensor by_task(const Tensor& values) const override {
    return scale.empty() ? values : values * (scale[1] - scale[0]) + scale[0];
  }
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool) const override {
    const auto& targets = batch.targets;
    const auto scaled = scale.empty() ? targets : (targets - scale[0]) / (scale[1] - scale[0]);
    fill_by_targets(part, (logits - scaled).square(), targets);
  }
  std::vector<double> scale;
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const RegressionConfig& config) {
  return std::make_shared<Regression>(config);
}

}  // namespace cloze
