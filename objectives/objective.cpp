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
    auto weighted = shape;
    weighted.weights = part.weights;
    part.sum = token_cross_entropy(hidden, table, bias, labels, weighted, &part.counts, draw);
    return;
  }
  const auto scores = token_scores(hidden, table, bias, labels, draw);
  const auto losses = part.weights.defined() ? scores.loss * part.weights : scores.loss;
  part.sum = losses.sum(at::kDouble).to(at::kFloat);
  part.counts = scores.correct.sum();
  part.single = individual(scores.loss, flat);
}

void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& predictions, const Tensor& labels,
                     const FlatIndices& flat) {
  const auto predicted = predictions.ne(0), truth = labels.ne(0);
  part.sum = losses.sum();
  part.counts = at::stack({predicted.eq(truth), truth, predicted, predicted.logical_and(truth)}).sum(1);
  if (!at::GradMode::is_enabled()) part.single = individual(losses, flat);
}

std::shared_ptr<TokenHead> make_token_head(const BackboneConfig& m) {
  return std::make_shared<TokenHead>(TokenHeadSizes{.hidden = m.hidden_size,
                                                    .embedding = m.embedding_width(),
                                                    .vocab = m.vocab_size,
                                                    .activation = m.gelu_head ? Activation::gelu : m.hidden_act,
                                                    .norm = m,
                                                    .biases = m,
                                                    .tied = m.tie_word_embeddings});
}

}  // namespace cloze
