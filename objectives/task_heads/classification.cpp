#include "objectives/task_heads/head_kind.h"

namespace cloze {

namespace {

struct Classification final : HeadKind {
  explicit Classification(const ClassificationConfig& config) : terms(config) {}
  void fill(LossPart& part, const Tensor& logits, const Batch& batch, bool is_training) const override {
    fill_by_labels(part, terms, logits, batch.labels, rows_of(batch.labels), is_training);
  }
  TaskHeadTerms terms;
};

}  // namespace

std::shared_ptr<HeadKind> make_head_kind(const ClassificationConfig& config) {
  return std::make_shared<Classification>(config);
}

}  // namespace cloze
