#include <cmath>

#include "objectives/objective.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("the boundary objective predicts runs of chosen tokens from the tokens beside them", "[objectives][sbo]") {
  // Rows of 8: runs 1-2, 5 | 0 (at the start), 3-5, 7 (at the end).
  const auto t = span_targets(at::tensor({1, 2, 5, 8, 11, 12, 13, 15}, at::kLong), 8, 2);
  CHECK(t.left == std::vector<int64_t>{0, 0, 4, 10, 10});
  CHECK(t.right == std::vector<int64_t>{3, 3, 6, 14, 14});
  CHECK(t.place == std::vector<int64_t>{0, 1, 0, 0, 1});   // the third of 3-5 lies beyond two targets
  CHECK(t.prediction == std::vector<int64_t>{0, 1, 2, 4, 5});
  CHECK(span_targets(at::tensor({6, 7, 8, 9}, at::kLong), 8, 9).place.empty());   // two runs, each at an end of its row
}

TEST_CASE("the boundary loss is the paper's formula, and has the published number of parameters", "[objectives][sbo]") {
  BertConfig model;
  model.vocab_size = 23, model.hidden_size = 12, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 16, model.max_position_embeddings = 16;
  SboConfig sbo;
  sbo.max_pair_targets = 3, sbo.position_embedding_size = 5;
  Network network(model, {MlmConfig{}, sbo});
  initialize(collect_params(network), 0.3, false, Rng(1));
  network.eval();
  Batch batch;
  batch.input_ids = at::arange(16, at::kLong).mul(7).remainder(23).view({2, 8});
  batch.positions = at::tensor({1, 2, 11, 12, 13, 14}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5}, at::kLong);
  at::NoGradGuard no_grad;
  const auto found = network.losses(batch, 0);
  REQUIRE(found.size() == 2);
  CHECK(found[1].name == "sbo");
  CHECK(found[1].count == 5);   // the fourth of the second run is not predicted
  CHECK(network.parts(batch)[1].count == 5);
  std::map<std::string, Tensor> w;
  for (const auto& [name, param] : collect_params(network)) w[name] = param.value().to(at::kDouble);
  const auto rows = network.backbone->hidden({.input_ids = batch.input_ids}).flatten(0, 1).to(at::kDouble);
  const auto layer = [&](const Tensor& x, const std::string& number) {
    auto y = at::linear(x, w.at("sbo.linear" + number + ".weight"), w.at("sbo.linear" + number + ".bias"));
    y = 0.5 * y * (1 + at::erf(y / std::sqrt(2.0)));
    const auto centred = y - y.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-12).sqrt() * w.at("sbo.layer_norm" + number + ".weight") + w.at("sbo.layer_norm" + number + ".bias");
  };
  double wanted = 0;
  for (const auto& [left, right, place, label] : std::vector<std::array<int64_t, 4>>{{0, 3, 0, 3}, {0, 3, 1, 9}, {10, 15, 0, 1}, {10, 15, 1, 22}, {10, 15, 2, 7}}) {
    const auto h = layer(layer(at::cat({rows[left], rows[right], w.at("sbo.position_embeddings")[place]}), "1"), "2");
    const auto logits = at::matmul(w.at("backbone.embeddings.word"), h) + w.at("sbo.bias");
    wanted += (at::logsumexp(logits, 0) - logits[label]).item<double>();
  }
  CHECK(found[1].sum.item<double>() == Approx(wanted).epsilon(1e-5));

  BertConfig base;
  base.vocab_size = 28996;
  int64_t count = 0;
  for (const auto& p : collect_params(*make_sbo(SboConfig{}, base))) count += p.param.value().numel();
  CHECK(count == 1959676);
}
