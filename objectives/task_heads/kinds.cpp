// The kinds of heads of tasks: what their logits are of, and their losses.
#include <limits>

#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

/// Right labels of rows.
struct Classification : HeadKind {
  explicit Classification(const TaskHeadTerms& head_terms) : terms(head_terms) {}
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const override {
    fill_by_labels(part, terms, logits, batch.labels, rows_of(batch.labels), is_training);
  }
  TaskHeadTerms terms;
};

struct Choosing final : Classification {
  using Classification::Classification;
  /// Of each candidate of each item, fp32 [I, n]; those that an item lacks have none.
  Tensor logits(const Tensor& scores, const Batch& batch) const override {  // [B, 1]
    if (!batch.candidates.defined()) return scores;
    const auto of_items =
        scores.squeeze(-1).index_select(0, batch.candidates.clamp_min(0).flatten()).view_as(batch.candidates);
    return of_items.masked_fill(batch.candidates.lt(0), -std::numeric_limits<float>::infinity());
  }
};

struct Tagging final : Classification {
  using Classification::Classification;
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const override {
    const auto rows = batch.positions.div(batch.input_ids.size(1), "floor");
    fill_by_labels(part, terms, logits, batch.labels, rows, is_training);
  }
};

struct Multilabel final : HeadKind {
  int64_t count(const Batch& batch) const override { return batch.targets.numel(); }
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool) const override {
    const auto& targets = batch.targets;
    part.counts = logits.gt(0).eq(targets.gt(0.5)).sum();
    fill_by_targets(part, at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::None), targets);
  }
};

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

struct Spans final : HeadKind {
  int64_t count(const Batch& batch) const override { return batch.labels.size(0); }
  /// The mean of the cross entropies of the first and of the last token, over the real tokens of each row.
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool) const override {
    auto scores = logits;
    if (batch.attention_mask.defined())
      scores =
          scores.masked_fill(batch.attention_mask.logical_not().unsqueeze(-1), -std::numeric_limits<float>::infinity());
    const auto of_side = [&](int64_t side) {
      return at::cross_entropy_loss(scores.select(-1, side), batch.labels.select(1, side), {}, at::Reduction::None);
    };
    const auto losses = (of_side(0) + of_side(1)) / 2;  // [B]
    part.counts = scores.argmax(1).eq(batch.labels).all(1).sum();
    fill_sum(part, losses, rows_of(batch.labels.select(1, 0)), losses);
  }
  NetworkOutputs outputs(const Tensor& logits) const override {
    return {{"start_logits", logits.select(-1, 0)}, {"end_logits", logits.select(-1, 1)}};
  }
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const ClassificationConfig& config) {
  return std::make_shared<Classification>(config);
}
std::shared_ptr<HeadKind> make_head_kind(const ChoiceConfig& config) { return std::make_shared<Choosing>(config); }
std::shared_ptr<HeadKind> make_head_kind(const TaggingConfig& config) { return std::make_shared<Tagging>(config); }
std::shared_ptr<HeadKind> make_head_kind(const MultilabelConfig&) { return std::make_shared<Multilabel>(); }
std::shared_ptr<HeadKind> make_head_kind(const RegressionConfig& config) {
  return std::make_shared<Regression>(config);
}
std::shared_ptr<HeadKind> make_head_kind(const SpansConfig&) { return std::make_shared<Spans>(); }

}  // namespace cloze
