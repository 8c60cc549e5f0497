#include "objectives/task_heads/head_kind.h"

#include "core/tensor/moved.h"

namespace cloze {

Tensor class_weights_of(const TaskHeadTerms& terms, const Tensor& like) {
  return moved_to(at::tensor(at::ArrayRef<double>(terms.class_weights), at::kDouble).to(at::kFloat), like.device());
}

LabelledLoss::LabelledLoss(const TaskHead& config, std::shared_ptr<HeadKind> kind, const HeadContext& in)
    : Objective(config),
      name_(config.name()),
      weight_(config.weight),
      terms_(config),
      use_(config.use()),
      kind_(std::move(kind)),
      design_(head_of(config, use_, in.model)),
      text_state_{config.head, design_.token, design_.mean, in.base.eos_token_id} {}

std::vector<LossPart> LabelledLoss::parts(const Batch& batch) const {
  LossPart part{.name = name_, .weight = weight_};
  part.count = kind_->count(batch.host());
  part.has_accuracy = kind_->has_accuracy();
  if (terms_.class_weights.empty() || !batch.labels.defined()) return {part};
  const auto& labels = batch.labels;
  part.weights = class_weights_of(terms_, labels)
                     .index_select(0, labels.clamp_min(0))
                     .masked_fill(labels.eq(uncounted_label), 0.0);
  return {part};
}

double LabelledLoss::count_states(const std::vector<RowSizes>& rows) const {
  double states = 0;
  for (const auto& row : rows) states += row.count * (reads_texts(use_) ? 1 : row.read);
  return states;
}

void LabelledLoss::count_predictions(const Batch& batch, std::vector<RowSizes>& rows) const {
  for (auto& row : rows) {
    row.predicted = 0;
    if (batch.decoder_input_ids.defined()) row.target_length = row.length;
  }
}

void fill_sum(LossPart& part, const Tensor& losses, const Tensor& rows, const Tensor& single) {
  const bool graph = at::GradMode::is_enabled();
  part.sum = graph ? losses.sum() : losses.sum(at::kDouble).to(at::kFloat);
  if (!graph) part.single = {.row = rows, .loss = single};
}

void fill_by_labels(LossPart& part, const TaskHeadTerms& terms, const Tensor& logits, const Tensor& labels,
                    const Tensor& rows, bool is_training) {
  const double smoothing = is_training ? terms.label_smoothing : 0;
  const auto weights = terms.class_weights.empty() ? std::optional<Tensor>() : class_weights_of(terms, logits);
  const auto losses =
      at::cross_entropy_loss(logits, labels, weights, at::Reduction::None, uncounted_label, smoothing);  // [N]
  part.counts = logits.argmax(-1).eq(labels).sum();
  const auto single = weights && !at::GradMode::is_enabled()
                          ? at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, uncounted_label)
                          : losses;
  fill_sum(part, losses, rows, single);
}

void fill_by_targets(LossPart& part, const Tensor& losses, const Tensor& targets) {
  const auto rows = rows_of(targets.select(1, 0).to(at::kLong)).unsqueeze(1).expand_as(targets).flatten();
  fill_sum(part, losses, rows, losses.flatten());
}

}  // namespace cloze
