#include "objectives/objective.h"

namespace cloze {

namespace {

Predictions single_ones(const Tensor& losses, const Places& places) {
  return {.row = places.at.div(places.width, "floor"), .loss = losses.detach()};
}

}  // namespace

void fill_by_tokens(LossPart& part, const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                    const Places& places, const LossShape& shape, TokenDraw* draw) {
  if (at::GradMode::is_enabled()) {
    part.sum = token_cross_entropy(hidden, table, bias, labels, shape, &part.correct, draw);
    return;
  }
  const auto scores = token_scores(hidden, table, bias, labels, draw);
  part.sum = scores.loss.sum(at::kDouble).to(at::kFloat);
  part.correct = scores.right.sum().item<int64_t>();
  part.single = single_ones(scores.loss, places);
}

void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& answers, const Tensor& labels,
                     const Places& places) {
  const auto said = answers.ne(0), truth = labels.ne(0);
  part.sum = losses.sum();
  part.correct = said.eq(truth).sum().item<int64_t>();
  part.yes_no = YesNo{.yes = truth.sum().item<int64_t>(),
                      .answered = said.sum().item<int64_t>(),
                      .both = said.logical_and(truth).sum().item<int64_t>()};
  if (!at::GradMode::is_enabled()) part.single = single_ones(losses, places);
}

}  // namespace cloze
