// An objective that labels every token, the example of docs/adding-objectives.md.
#include <cmath>

#include "core/tensor/ops.h"
#include "objectives/objective.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

/// Some tokens of a row change places with each other, and each token is judged to have moved or not.
/// Source: Panda et al. 2021, "Shuffled-token detection for refining pre-trained RoBERTa".
struct ShuffledTokens final : Objective {
  ShuffledTokens(const ObjectiveTerms& terms, int64_t hidden_size)
      : Objective(terms), weight(terms.weight), head(own("head", std::make_shared<Linear>(hidden_size, 2))) {}

  std::string name() const override { return "shuffled"; }

  /// Flat indices of the tokens that are no padding, which is what its loss reads.
  static Tensor tokens_of(const Batch& batch) { return batch.attention_mask.flatten().nonzero().flatten(); }

  std::vector<LossPart> parts(const Batch& batch) const override {
    return {{.name = name(), .weight = weight, .count = batch.attention_mask.sum().item<int64_t>()}};
  }
  Cost cost(const Backbone&, const std::vector<RowSizes>& rows) const override {
    return {.trained = total(rows, &RowSizes::length) * head->multiply_adds()};
  }

  /// The tokens that the rows were masked at change places within their rows; `replaced` has the labels.
  std::vector<LossPart> rewrite(Batch& batch, uint64_t key) override {
    const auto row = batch.positions.div(batch.input_ids.size(1), "floor");
    const auto order = at::argsort(uniform_numbers(row.numel(), key) + row);
    const auto moved = batch.labels.index_select(0, order);
    const auto put = [&](const Tensor& rows, const Tensor& values) {
      return rows.flatten().index_put({batch.positions}, values).view(rows.sizes());
    };
    batch.replaced = put(at::zeros_like(batch.input_ids), moved.ne(batch.labels).to(at::kLong));
    batch.input_ids = put(batch.input_ids, moved);
    return {};
  }
  /// The draws of `rewrite` depend on the rows of a batch.
  int64_t scored_batch_size(int64_t) const override { return 32; }

  std::vector<LossPart> losses(Backbone&, const Tensor& hidden, const Batch& batch) override {
    auto part = parts(batch)[0];
    const auto tokens = tokens_of(batch);
    const auto logits = head->forward(take_rows(hidden.flatten(0, 1), tokens)).to(at::kFloat);  // [N, 2]
    const auto labels = batch.replaced.flatten().index_select(0, tokens);
    const auto losses = at::cross_entropy_loss(logits, labels, {}, at::Reduction::None);
    fill_by_answers(part, losses, logits.argmax(-1), labels, {tokens, hidden.size(1)});
    return {part};
  }
  NetworkOutputs outputs(Backbone&, const Tensor& hidden) override { return {{"logits", head->forward(hidden)}}; }

  double weight;
  std::shared_ptr<Linear> head;
};

/// Two rows of nine tokens, the last three of the second padding; eight tokens are masked by 22.
Batch masked_rows() {
  Batch batch;
  const auto text = at::arange(18, at::kLong).view({2, 9});
  batch.positions = at::tensor({1, 2, 4, 6, 7, 10, 12, 14}, at::kLong);
  batch.labels = batch.positions.clone();
  batch.input_ids = text.flatten().index_fill(0, batch.positions, 22).view({2, 9});
  batch.attention_mask = at::arange(18, at::kLong).lt(15).view({2, 9});
  return batch;
}

}  // namespace

TEST_CASE("an objective that labels every token moves tokens within rows and sums the losses of all that are real",
          "[objectives]") {
  const auto backbone = make(small());
  ShuffledTokens objective({.weight = 2}, 12);
  initialize(collect_params(objective), 0.3, false, Rng(2));
  objective.eval();
  auto batch = masked_rows();
  const auto text = at::arange(18, at::kLong).view({2, 9});
  objective.rewrite(batch, 5);
  CHECK(at::equal(std::get<0>(batch.input_ids.sort(1)), text));
  CHECK(at::equal(batch.replaced.ne(0), batch.input_ids.ne(text)));
  CHECK(batch.replaced.sum().item<int64_t>() >= 4);

  const auto hidden = backbone->hidden({.input_ids = batch.input_ids, .attention_mask = batch.attention_mask});
  const auto part = objective.losses(*backbone, hidden, batch).at(0);
  const auto logits = objective.outputs(*backbone, hidden)[0].second.to(at::kDouble);
  double sum = 0;
  for (int64_t i = 0; i < 15; ++i) {
    const auto of = logits.view({18, 2})[i];
    const auto label = batch.replaced.flatten()[i].item<int64_t>();
    sum += std::log(std::exp(of[0].item<double>()) + std::exp(of[1].item<double>())) - of[label].item<double>();
  }
  CHECK(part.count == 15);
  CHECK(part.sum.item<double>() == Approx(sum).epsilon(1e-5));
  CHECK(part.binary()->positives == batch.replaced.sum().item<int64_t>());
}
