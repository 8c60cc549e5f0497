// The z-loss of objectives that predict tokens other than the next.
#include "models/families/bert.h"
#include "objectives/network.h"
#include "objectives/rtd/rtd.h"
#include "objectives/sbo/sbo.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

BertConfig tiny_bert() {
  auto model = small();
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  return model;
}

/// Runs of masked tokens that do not touch [CLS] and [SEP].
Batch some_batch() {
  Batch batch;
  batch.input_ids = at::arange(24, at::kLong).mul(7).remainder(23).view({3, 8});
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.positions = at::tensor({2, 3, 11, 12, 13, 20}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5}, at::kLong);
  return batch;
}

/// The loss of this name.
double loss_of(const Objectives& objectives, const std::string& name, bool training) {
  Network network(tiny_bert(), objectives);
  initialize(collect_params(network), 0.3, false, Rng(1));
  network.train(training);
  for (const auto& part : network.losses(some_batch(), 0))
    if (part.name == name) return part.sum.item<double>();
  FAIL("no loss is called " << name);
  return 0;
}

/// Sum of squared log-sum-exps over the predictions of mlm.
double squares_of_mlm() {
  Network network(tiny_bert(), {MlmConfig{}});
  initialize(collect_params(network), 0.3, false, Rng(1));
  network.eval();
  const auto batch = some_batch();
  const auto outputs = network.outputs({.input_ids = batch.input_ids, .token_type_ids = batch.token_type_ids});
  for (const auto& [name, tensor] : outputs)
    if (name == "logits")
      return at::logsumexp(tensor.flatten(0, 1).index_select(0, batch.positions), {-1}).square().sum().item<double>();
  FAIL("the network has no logits");
  return 0;
}

}  // namespace

TEST_CASE("the z-loss of mlm is its factor times the squared log-sum-exps, and held-out losses have none",
          "[objectives][z-loss]") {
  MlmConfig plain, with;
  with.z_loss = 0.01;
  const double cross_entropy = loss_of({plain}, "mlm", true);
  CHECK(loss_of({with}, "mlm", true) == Approx(cross_entropy + 0.01 * squares_of_mlm()).epsilon(1e-4));
  CHECK(loss_of({with}, "mlm", false) == loss_of({plain}, "mlm", false));
}

TEST_CASE("the generator of rtd has the z-loss of its mlm, and sbo one of its own", "[objectives][z-loss]") {
  RtdConfig rtd, rtd_with;
  rtd_with.mlm.z_loss = 0.01;
  CHECK(loss_of({rtd_with}, "generator", true) > loss_of({rtd}, "generator", true) + 0.1);
  CHECK(loss_of({rtd_with}, "rtd", true) == loss_of({rtd}, "rtd", true));
  SboConfig sbo, sbo_with;
  sbo_with.z_loss = 0.01;
  CHECK(loss_of({MlmConfig{}, sbo_with}, "sbo", true) > loss_of({MlmConfig{}, sbo}, "sbo", true) + 0.1);
  CHECK(loss_of({MlmConfig{}, sbo_with}, "mlm", true) == loss_of({MlmConfig{}, sbo}, "mlm", true));
}
