// Learning rates by depth.
#include <map>

#include "models/families/families.h"
#include "objectives/kinds.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/small.h"
#include "optimizers/optimizer.h"

using namespace cloze;

namespace {

/// The factors on the rate of each parameter, by name.
std::map<std::string, double> factors_in(const OptimizerConfig& config, const ModelConfig& model, int64_t layers) {
  ClassificationConfig head;
  head.labels = {"a", "b"};
  std::map<std::string, double> factors;
  for (const auto& [name, param] : collect_params(Network(model, {head})))
    factors[name] = depth_factor(config, param, layers);
  return factors;
}

}  // namespace

TEST_CASE("the rate of a parameter falls with its depth as ELECTRA's code counts it", "[train][optimizer]") {
  OptimizerConfig config;
  config.layer_decay = 0.5;
  auto electra = small<ElectraConfig>();
  electra.num_hidden_layers = 3;
  electra.embedding_size = 8;
  electra.norm_place = NormPlacement::pre;
  auto factor = factors_in(config, electra, 3);
  CHECK(factor.at("backbone.embeddings.word") == std::pow(0.5, 5));
  CHECK(factor.at("backbone.projection.weight") == std::pow(0.5, 5));
  CHECK(factor.at("backbone.stack.0.attention.qkv.weight") == std::pow(0.5, 4));
  CHECK(factor.at("backbone.stack.2.output.weight") == 0.25);
  CHECK(factor.at("backbone.stack.final_norm.weight") == 0.25);
  CHECK(factor.at("classification.output.weight") == 1);
  CHECK(factors_in(config, small(), 2).at("backbone.pooler.weight") == 1);
  config.head_rate = 10 * config.learning_rate;
  factor = factors_in(config, electra, 3);
  CHECK(factor.at("classification.output.weight") == Approx(10));
  CHECK(factor.at("backbone.stack.2.output.weight") == 0.25);
  auto both = small<BartConfig>();
  both.num_decoder_layers = 3;
  both.norm_place = NormPlacement::pre;
  factor = factors_in(config, both, 5);
  CHECK(factor.at("backbone.encoder.1.output.weight") == std::pow(0.5, 5));
  CHECK(factor.at("backbone.decoder.0.output.weight") == std::pow(0.5, 4));
  CHECK(factor.at("backbone.encoder.final_norm.weight") == std::pow(0.5, 5));
  CHECK(factor.at("backbone.decoder.final_norm.weight") == 0.25);
  CHECK(factor.at("backbone.decoder_embeddings.position") == std::pow(0.5, 7));
  CHECK(factors_in({}, electra, 3).at("backbone.embeddings.word") == 1);
}

TEST_CASE("layers that are frozen are the embeddings, and so many from them on", "[train][optimizer]") {
  ClassificationConfig head;
  head.labels = {"a", "b"};
  const auto frozen = [&](const ModelConfig& model, int64_t layers) {
    Network network(model, {head});
    freeze_layers(collect_params(network), layers);
    std::string parts;
    for (const auto& [name, param] : collect_params(network)) {
      const auto part = name.substr(0, name.find('.', name.find('.', name.find('.') + 1) + 1));
      if (param.is_base() && parts.find(part + " ") == std::string::npos) parts += part + " ";
    }
    return parts;
  };
  CHECK_THAT(frozen(small(), 0), Catch::StartsWith("backbone.embeddings.") && !Catch::Contains("backbone.stack."));
  CHECK_THAT(frozen(small(), 1), Catch::EndsWith("backbone.stack.0 "));
  CHECK_THAT(frozen(small(), 2), Catch::EndsWith("backbone.stack.1 ") && !Catch::Contains("pooler"));
  CHECK_THAT(frozen(small<Gpt2Config>(), 2), Catch::EndsWith("backbone.stack.final_norm "));
  const auto bart = frozen(small<BartConfig>(), 3);  // two layers of the encoder, one of the decoder
  CHECK_THAT(bart, Catch::Contains("backbone.encoder.1 ") && Catch::Contains("backbone.decoder.0 "));
  CHECK_THAT(bart, !Catch::Contains("backbone.decoder.1 "));
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
