// Standard deviations and distributions of initial weights, against the formulas of published code.
#include <cmath>

#include "models/families/families.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "run/config/config.h"

#include "tests/support/objective.h"

using namespace cloze;

namespace {

struct Measured {
  double deviation, largest, kurtosis;  // kurtosis: 3 of a normal, 9/5 of a uniform distribution
};

Measured measured(const Tensor& weights) {
  const auto x = weights.detach().to(at::kDouble);
  const double variance = x.square().mean().item<double>();
  return {std::sqrt(variance), x.abs().max().item<double>(), x.pow(4).mean().item<double>() / (variance * variance)};
}

void check_normal(const Tensor& weights, double deviation) {
  const auto found = measured(weights);
  CHECK(found.deviation == Approx(deviation).epsilon(0.03));
  CHECK(found.kurtosis == Approx(3).epsilon(0.08));
}

void check_truncated(const Tensor& weights, double range) {
  const auto found = measured(weights);
  CHECK(found.deviation == Approx(0.8796 * range).epsilon(0.03));
  CHECK(found.largest <= 2 * range);
}

/// Glorot uniform: limits of sqrt(6 / (inputs + outputs)), given as a standard deviation.
void check_uniform(const Tensor& weights, double deviation) {
  const auto found = measured(weights);
  CHECK(found.deviation == Approx(deviation).epsilon(0.03));
  CHECK(found.largest <= std::sqrt(3.0) * deviation * (1 + 1e-6));
  CHECK(found.kurtosis == Approx(1.8).epsilon(0.03));
}

std::map<std::string, Tensor> initial_weights(const ModelConfig& model, const Objectives& objectives) {
  Network network(model, objectives);
  const auto& encoder = backbone_of(model);
  const auto params = collect_params(network);
  initialize(params, encoder.initializer_range, is_truncated(encoder.initializer), Rng(3));
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, param] : params) tensors.emplace(name, param.value());
  return tensors;
}

template <class Config>
Config of_width(int64_t width) {
  Config c;
  c.vocab_size = 500, c.hidden_size = width, c.num_hidden_layers = 1, c.num_attention_heads = 4;
  c.intermediate_size = 4 * width;
  c.max_position_embeddings = 128;
  return c;
}

}  // namespace

TEST_CASE("an untied head of T5 is initialized with 1 / sqrt(width), as a dense layer of Mesh TensorFlow",
          "[train][init]") {
  auto t5 = of_width<T5Config>(256);
  t5.tie_word_embeddings = false;
  const auto found = initial_weights(t5, {default_objective<SpanCorruptionConfig>()});
  check_normal(found.at("lm.head.decoder"), 0.0625);
  check_normal(found.at("backbone.embeddings.word"), 1);
  check_normal(found.at("backbone.encoder.0.attention.qkv.weight").slice(0, 0, 256), 0.0625 / 8);
  check_normal(found.at("backbone.encoder.0.attention.qkv.weight").slice(0, 256), 0.0625);
}

TEST_CASE("T5 initializes the queries of a decoder with heads of its own as those of the encoder", "[train][init]") {
  auto t5 = of_width<T5Config>(256);
  t5.decoder_attention_heads = 2;
  const auto found = initial_weights(t5, {default_objective<SpanCorruptionConfig>()});
  check_normal(found.at("backbone.decoder.0.attention.qkv.weight").slice(0, 0, 128), 0.0625 / 8);
  check_normal(found.at("backbone.decoder.0.attention.qkv.weight").slice(0, 128), 0.0625);
  check_normal(found.at("backbone.decoder.0.cross_attention.query.weight"), 0.0625 / 8);
}

TEST_CASE("xavier initializes queries, keys and values each by the shape of its own matrix, in decoder attention too",
          "[train][init]") {
  auto c = of_width<VaswaniConfig>(256);
  c.tie_word_embeddings = false;
  const auto found = initial_weights(c, {default_objective<DenoisingConfig>()});
  for (const auto& part : found.at("backbone.encoder.0.attention.qkv.weight").chunk(3)) check_uniform(part, 0.0625);
  check_uniform(found.at("backbone.decoder.0.cross_attention.query.weight"), 0.0625);
  for (const auto& part : found.at("backbone.decoder.0.cross_attention.key_value.weight").chunk(2))
    check_uniform(part, 0.0625);
  check_uniform(found.at("backbone.encoder.0.attention.output.weight"), 0.0625);
  check_uniform(found.at("backbone.encoder.0.intermediate.weight"), std::sqrt(2.0 / (256 + 1024)));
  check_normal(found.at("backbone.embeddings.word"), 0.0625);
  check_normal(found.at("lm.head.decoder"), 0.0625);
}

TEST_CASE(
    "ELECTRA's projection of embeddings and the discriminator's output are Glorot uniform, as in its code, and normal "
    "as in Hugging Face",
    "[train][init]") {
  auto c = of_width<ElectraConfig>(256);
  c.embedding_size = 128;
  const auto rtd = objective("{kind: rtd, generator_hidden_size: 0.25}");
  auto found = initial_weights(c, {rtd});
  check_uniform(found.at("backbone.projection.weight"), std::sqrt(2.0 / (128 + 256)));
  check_uniform(found.at("rtd.generator.projection.weight"), std::sqrt(2.0 / (128 + 64)));
  const auto output = measured(found.at("rtd.prediction.weight"));  // 256 weights
  CHECK(output.deviation == Approx(std::sqrt(2.0 / 257)).epsilon(0.1));
  CHECK(output.largest <= std::sqrt(6.0 / 257));
  check_truncated(found.at("rtd.dense.weight"), 0.02);
  check_truncated(found.at("rtd.generator_head.transform.weight"), 0.02);
  c.initializer = Initializer::normal;
  found = initial_weights(c, {rtd});
  check_normal(found.at("backbone.projection.weight"), 0.02);
  CHECK(measured(found.at("rtd.prediction.weight")).deviation == Approx(0.02).epsilon(0.15));
}

TEST_CASE(
    "Linformer's projections of positions are initialized as other weights, with half of the variance under xavier",
    "[train][init]") {
  auto c = of_width<RobertaConfig>(64);
  c.attention = LinformerAttention{.compressed = 2};
  check_normal(initial_weights(c, {default_objective<MlmConfig>()}).at("backbone.stack.0.attention.compress_key"),
               0.02);
  c.initializer = Initializer::xavier;
  check_uniform(initial_weights(c, {default_objective<MlmConfig>()}).at("backbone.stack.0.attention.compress_value"),
                std::sqrt(2.0 / (64 + 128)) / std::sqrt(2.0));
}
