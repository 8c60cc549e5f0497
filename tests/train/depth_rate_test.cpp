// Learning rates by depth.
#include "objectives/kinds.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"
#include "train/optimizer.h"

using namespace cloze;

TEST_CASE("the rate of a parameter falls with its depth as ELECTRA's code counts it", "[train][optimizer]") {
  OptimizerConfig config;
  config.layer_decay = 0.5;
  const NetworkLayers layers{.first = 3};
  const auto factor = [&](const std::string& name) { return depth_factor(config, name, layers); };
  CHECK(factor("backbone.embeddings.word") == std::pow(0.5, 5));
  CHECK(factor("backbone.projection.weight") == std::pow(0.5, 5));
  CHECK(factor("backbone.stack.0.attention.qkv.weight") == std::pow(0.5, 4));
  CHECK(factor("backbone.stack.2.output.weight") == 0.25);
  CHECK(factor("backbone.stack.final_norm.weight") == 0.25);
  CHECK(factor("backbone.pooler.weight") == 1);
  CHECK(factor("classification.output.weight") == 1);
  config.head_rate = 10 * config.learning_rate;
  CHECK(factor("classification.output.weight") == Approx(10));
  CHECK(factor("backbone.stack.2.output.weight") == 0.25);
  const NetworkLayers both{.first = 2, .decoder = 3};
  CHECK(depth_factor(config, "backbone.encoder.1.output.weight", both) == std::pow(0.5, 5));
  CHECK(depth_factor(config, "backbone.decoder.0.output.weight", both) == std::pow(0.5, 4));
  CHECK(depth_factor(config, "backbone.encoder.final_norm.weight", both) == std::pow(0.5, 5));
  CHECK(depth_factor(config, "backbone.decoder_embeddings.position", both) == std::pow(0.5, 7));
  config = {};
  CHECK(factor("backbone.embeddings.word") == 1);
}

TEST_CASE("a step of Adam moves each parameter by its rate times its factor", "[train][optimizer]") {
  ClassificationConfig head;
  head.labels = {"a", "b"};
  Network network(small(), {head});
  initialize(collect_params(network), 0.1, false, Rng(1));
  FlatParameters flat(collect_params(network), at::kCPU);
  OptimizerConfig config;
  config.weight_decay = 0;
  config.layer_decay = 0.5;
  config.head_rate = 0.01;
  config.learning_rate = 0.001;
  Optimizer optimizer(config, flat);
  const auto before = flat.values.clone();
  flat.grads.fill_(1);
  optimizer.step(0.001, 1);
  for (const auto& range : flat.ranges()) {
    const auto& name = range.param.name;
    const bool is_head = name.starts_with("classification.") || name.starts_with("backbone.pooler.");
    const double expected = is_head                                 ? 0.01
                            : name.starts_with("backbone.stack.0.") ? 0.001 * std::pow(0.5, 3)
                            : name.starts_with("backbone.stack.1.") ? 0.001 * 0.25
                                                                    : 0.001 * std::pow(0.5, 4);
    const auto moved = (before - flat.values).narrow(0, range.offset, range.numel).max().item<double>();
    INFO(name);
    CHECK(moved == Approx(expected).epsilon(1e-3));
  }
}
