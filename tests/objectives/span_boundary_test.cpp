#include <cmath>

#include "models/families/bert.h"
#include "objectives/mlm/mlm.h"
#include "objectives/network.h"
#include "objectives/sbo/sbo.h"
#include "objectives/sbo/span_targets.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Rows [CLS] words [SEP] of 8 tokens, with `words` words each, and these predicted positions.
Batch batch_of(const std::vector<int64_t>& positions, const std::vector<int64_t>& words = {6, 6}) {
  constexpr int64_t cls = 1, sep = 2;
  Batch batch;
  batch.input_ids = at::zeros({2, 8}, at::kLong);
  batch.attention_mask = at::zeros({2, 8}, at::kBool);
  for (int64_t row = 0; row < 2; ++row) {
    const int64_t n = words[static_cast<size_t>(row)];
    batch.input_ids[row].slice(0, 1, 1 + n) = at::arange(10, 10 + n, at::kLong);
    batch.input_ids[row][0] = cls;
    batch.input_ids[row][1 + n] = sep;
    batch.attention_mask[row].slice(0, 0, n + 2) = true;
  }
  batch.positions = at::tensor(positions, at::kLong);
  return batch;
}

}  // namespace

TEST_CASE("the span boundary objective predicts masked spans from the tokens next to them", "[objectives][sbo]") {
  // Rows of 8: runs 2-3, 5 | 3-5.
  const auto t = span_targets(batch_of({2, 3, 5, 11, 12, 13}), 2);
  CHECK(t.left == std::vector<int64_t>{1, 1, 4, 10, 10});
  CHECK(t.right == std::vector<int64_t>{4, 4, 6, 14, 14});
  CHECK(t.position == std::vector<int64_t>{0, 1, 0, 0, 1});  // the third of 3-5 exceeds the two targets per span
  CHECK(t.prediction == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("spans at the first and the last position of a text have no targets, as in SpanBERT's code",
          "[objectives][sbo]") {
  CHECK(span_targets(batch_of({1, 2, 6, 9, 14}), 9).position.empty());  // next to [CLS] and [SEP]
  CHECK(span_targets(batch_of({4, 13}, {4, 6}), 9).prediction ==
        std::vector<int64_t>{1});                                // the first row is padded: [SEP] is at 5
  CHECK(span_targets(batch_of({0, 7, 8}), 9).position.empty());  // [CLS] and [SEP] themselves
  auto pair = batch_of({2, 4, 10, 12});
  pair.input_ids[0][3] = 2;  // [CLS] A [SEP] B [SEP]
  CHECK(span_targets(pair, 9).prediction == std::vector<int64_t>{2, 3});
}

TEST_CASE("the span boundary loss is the paper's formula, and has the published number of parameters",
          "[objectives][sbo]") {
  BertConfig model;
  model.vocab_size = 23, model.hidden_size = 12, model.num_hidden_layers = 1, model.num_attention_heads = 2,
  model.intermediate_size = 16, model.max_position_embeddings = 16;
  SboConfig sbo;
  sbo.max_pair_targets = 3;
  sbo.position_embedding_size = 5;
  Network network(model, {MlmConfig{}, sbo});
  initialize(collect_params(network), 0.3, false, Rng(1));
  network.eval();
  Batch batch;
  batch.input_ids = at::arange(16, at::kLong).mul(7).remainder(23).view({2, 8});
  batch.positions = at::tensor({2, 3, 10, 11, 12, 13}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5}, at::kLong);
  at::NoGradGuard no_grad;
  const auto found = network.losses(batch, 0);
  REQUIRE(found.size() == 2);
  CHECK(found[1].name == "sbo");
  CHECK(found[1].count == 5);  // the fourth of the second span is not predicted
  CHECK(network.parts(batch)[1].count == 5);
  std::map<std::string, Tensor> w;
  for (const auto& [name, param] : collect_params(network)) w[name] = param.value().to(at::kDouble);
  const auto rows = network.backbone->hidden({.input_ids = batch.input_ids}).flatten(0, 1).to(at::kDouble);
  const auto layer = [&](const Tensor& x, const std::string& number) {
    auto y = at::linear(x, w.at("sbo.linear" + number + ".weight"), w.at("sbo.linear" + number + ".bias"));
    y = 0.5 * y * (1 + at::erf(y / std::sqrt(2.0)));
    const auto centred = y - y.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-12).sqrt() * w.at("sbo.layer_norm" + number + ".weight") +
           w.at("sbo.layer_norm" + number + ".bias");
  };
  double wanted = 0;
  for (const auto& [left, right, position, label] :
       std::vector<std::array<int64_t, 4>>{{1, 4, 0, 3}, {1, 4, 1, 9}, {9, 14, 0, 1}, {9, 14, 1, 22}, {9, 14, 2, 7}}) {
    const auto h =
        layer(layer(at::cat({rows[left], rows[right], w.at("sbo.position_embeddings")[position]}), "1"), "2");
    const auto logits = at::matmul(w.at("backbone.embeddings.word"), h) + w.at("sbo.bias");
    wanted += (at::logsumexp(logits, 0) - logits[label]).item<double>();
  }
  CHECK(found[1].sum.item<double>() == Approx(wanted).epsilon(1e-5));

  BertConfig base;
  base.vocab_size = 28996;
  const ModelConfig large = base;
  int64_t count = 0;
  for (const auto& p : collect_params(*make_head(SboConfig{}, HeadContext{large, *network.backbone})))
    count += p.param.value().numel();
  CHECK(count == 1959676);
}
