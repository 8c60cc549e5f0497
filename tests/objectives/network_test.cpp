#include "models/families/bert.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

Batch masked_batch_of_six() {
  Batch batch;
  batch.input_ids = at::arange(24, at::kLong).mul(7).remainder(23).view({3, 8});
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.positions = at::tensor({1, 2, 11, 12, 13, 20}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5}, at::kLong);
  batch.pair_label = at::tensor({0, 1, 1}, at::kLong);
  return batch;
}

}  // namespace

TEST_CASE("losses and gradients with read_positions equal those with the hidden states of all positions",
          "[objectives][network]") {
  auto model = small();
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  const auto batch = masked_batch_of_six();
  for (const Objectives& objectives :
       {Objectives{default_objective<MlmConfig>()}, Objectives{default_objective<NspConfig>()},
        Objectives{default_objective<MlmConfig>(), default_objective<NspConfig>()},
        Objectives{default_objective<SopConfig>(), default_objective<MlmConfig>(), default_objective<SboConfig>()}}) {
    INFO(objectives.size());
    const auto run = [&](bool narrow) {
      Network network(model, objectives);
      initialize(collect_params(network), 0.3, false, Rng(1));
      FlatParameters flat(collect_params(network), at::kCPU);
      std::vector<LossPart> parts;
      if (narrow) {
        parts = network.losses(batch, 0);
      } else {
        const auto hidden =
            network.backbone->hidden({.input_ids = batch.input_ids, .token_type_ids = batch.token_type_ids});
        for (const auto& objective : network.objectives)
          for (auto& part : objective->losses(*network.backbone, hidden, batch)) parts.push_back(part);
      }
      auto total = at::zeros({1});
      for (size_t k = 0; k < parts.size(); ++k) total = total + parts[k].sum * (1 + static_cast<double>(k));
      total.backward();
      return std::pair{total.detach(), flat.grads.clone()};
    };
    const auto few = run(true), all = run(false);
    CHECK(error_of(few.first, all.first) < 1e-6);
    CHECK(error_of(few.second, all.second) < 1e-5);
    CHECK(all.second.abs().max().item<double>() > 0.1);
  }
}
