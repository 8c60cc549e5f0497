#include "objectives/objective.h"

namespace cloze {

namespace {

Predictions individual(const Tensor& losses, const FlatIndices& flat) {
  return {.row = flat.index.div(flat.width, "floor"), .loss = losses.detach()};
}

}  // namespace

void fill_by_tokens(LossPart& part, const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                    const FlatIndices& flat, const LossOptions& shape, TokenDraw* draw) {
  if (at::GradMode::is_enabled()) {
    part.sum = token_cross_entropy(hidden, table, bias, labels, shape, &part.correct, draw);
    return;
  }
  const auto scores = token_scores(hidden, table, bias, labels, draw);
  part.sum = scores.loss.sum(at::kDouble).to(at::kFloat);
  part.correct = scores.correct.sum().item<int64_t>();
  part.single = individual(scores.loss, flat);
}

void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& predictions, const Tensor& labels,
                     const FlatIndices& flat) {
  const auto predicted = predictions.ne(0), truth = labels.ne(0);
  part.sum = losses.sum();
  part.correct = predicted.eq(truth).sum().item<int64_t>();
  part.binary = BinaryCounts{.positives = truth.sum().item<int64_t>(),
                             .predicted = predicted.sum().item<int64_t>(),
                             .true_positives = predicted.logical_and(truth).sum().item<int64_t>()};
  if (!at::GradMode::is_enabled()) part.single = individual(losses, flat);
}

}  // namespace cloze
