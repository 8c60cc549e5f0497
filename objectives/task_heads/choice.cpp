#include <limits>

#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Choosing final : HeadKind {
  explicit Choosing(const ChoiceConfig& config) : terms(config) {}
  /// Of each candidate of each item, fp32 [I, n]; those that an item lacks have none.
  Tensor logits(const Tensor& scores, const Batch& batch) const override {  // [B, 1]
    if (!batch.candidates.defined()) return scores;
    const auto of_items =
        scores.squeeze(-1).index_select(0, batch.candidates.clamp_min(0).flatten()).view_as(batch.candidates);
    return of_items.masked_fill(batch.candidates.lt(0), -std::numeric_limits<float>::infinity());
  }
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const override {
    fill_by_labels(part, terms, logits, batch.labels, rows_of(batch.labels), is_training);
  }
  TaskHeadTerms terms;
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const ChoiceConfig& config) { return std::make_shared<Choosing>(config); }

}  // namespace cloze
