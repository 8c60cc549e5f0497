#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Tagging final : HeadKind {
  explicit Tagging(const TaggingConfig& config) : terms(config) {}
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const override {
    const auto rows = batch.positions.div(batch.input_ids.size(1), "floor");
    fill_by_labels(part, terms, logits, batch.labels, rows, is_training);
  }
  TaskHeadTerms terms;
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const TaggingConfig& config) { return std::make_shared<Tagging>(config); }

}  // namespace cloze
