#include <cmath>

#include "core/error.h"
#include "models/families/backbone.h"
#include "models/families/families.h"
#include "models/positions/bucket_bias.h"
#include "models/stack.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/naive.h"

using namespace cloze;

namespace {

template <class Config>
Config small(Config c) {
  c.vocab_size = 23, c.hidden_size = 12, c.num_attention_heads = 3, c.intermediate_size = 20, c.num_hidden_layers = 2,
  c.max_position_embeddings = 16;
  c.layer_norm_eps = 1e-6;
  if constexpr (std::derived_from<Config, EncoderDecoderConfig>) c.num_decoder_layers = 3;
  if (c.d_kv > 0) c.d_kv = 6;
  return c;
}

/// A generative model of each family.
std::vector<std::pair<std::string, ModelConfig>> families() {
  auto gated = small(T5Config{});
  gated.feed_forward = FeedForward::gated;
  gated.hidden_act = Activation::gelu_new;
  auto prefix = small(Gpt2Config{});
  prefix.prefix_lm = true;
  const auto with = [](auto config, const Positions& positions) {
    config.positions = positions;
    return config;
  };
  LstmConfig recurrent;
  recurrent.vocab_size = 23, recurrent.hidden_size = 12;
  return {{"gpt2, rotary", with(small(Gpt2Config{}), Rotary{})},
          {"t5, rotary", with(small(T5Config{}), Rotary{})},
          {"bart, rotary", with(small(BartConfig{}), Rotary{})},
          {"gpt2, alibi", with(small(Gpt2Config{}), Alibi{})},
          {"bart, alibi", with(small(BartConfig{}), Alibi{})},
          {"gpt2", small(Gpt2Config{})},
          {"gpt2, prefix", prefix},
          {"t5", small(T5Config{})},
          {"t5 1.1", gated},
          {"bart", small(BartConfig{})},
          {"mbart", small(MBartConfig{})},
          {"pegasus", small(PegasusConfig{})},
          {"transformer", small(VaswaniConfig{})},
          {"lstm", recurrent}};
}

std::shared_ptr<Backbone> make(const ModelConfig& c) {
  auto model = make_backbone(c, {});
  initialize(collect_params(*model), 0.3, false, Rng(5));
  at::NoGradGuard no_grad;
  for (auto [name, param] : collect_params(*model))  // no norm weights of 1, no biases of 0
    if (!param.fixed() && param.value().dim() == 1)
      param.value().add_(at::sin(at::arange(param.value().numel(), at::kFloat)) * 0.2);
  model->eval();
  return model;
}

/// The same in double, where equal formulas agree to many digits.
std::shared_ptr<Backbone> make_exact(const ModelConfig& c) {
  auto model = make(c);
  convert_params(*model, at::kDouble);
  return model;
}

Tensor some_ids(int64_t rows, int64_t length, int64_t step = 7) {
  return at::arange(rows * length, at::kLong).mul(step).remainder(19).add(3).view({rows, length});
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("relative position buckets match the published code at every boundary", "[models][t5]") {
  const auto at_distance = [](int64_t n, bool causal) {
    return DistanceBuckets(32, 128, causal)(at::tensor({n}, at::kLong)).item<int64_t>();
  };
  // The first distance of each bucket, from the formula with exact logarithms.
  const std::vector<int64_t> both{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91},
      past{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
           16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  for (size_t k = 0; k < both.size(); ++k) {
    CHECK(at_distance(-both[k], false) == static_cast<int64_t>(k));
    if (k > 0) CHECK(at_distance(both[k], false) == static_cast<int64_t>(k) + 16);
    if (k > 8) CHECK(at_distance(1 - both[k], false) == static_cast<int64_t>(k) - 1);
  }
  for (size_t k = 0; k < past.size(); ++k) CHECK(at_distance(-past[k], true) == static_cast<int64_t>(k));
  CHECK(at_distance(-5000, true) == 31);
  CHECK(at_distance(7, true) == 0);
  CHECK(at_distance(-200, false) == 15);
  CHECK(at_distance(127, false) == 31);
}

TEST_CASE("incremental decoding with a cache gives the hidden states of the whole text", "[models][decoder]") {
  at::NoGradGuard no_grad;
  for (const auto& [name, model_config] : families()) {
    const auto& config = backbone_of(model_config);
    INFO(name);
    auto model = make_exact(model_config);
    Inputs in{.input_ids = some_ids(2, 7), .attention_mask = at::ones({2, 7}, at::kBool)};
    in.attention_mask[1].narrow(0, 5, 2).fill_(false);
    const auto text = some_ids(2, 6, 5);
    EncoderOutput encoded;
    Tensor whole;
    if (config.is_encoder_decoder()) {
      in.decoder_input_ids = text;
      encoded = model->encode(in);
      whole = model->hidden(in);
    } else {
      const bool has_prefix = part_of<PrefixAttention>(model_config).prefix_lm;
      whole = model->hidden({.input_ids = text, .prefix = has_prefix ? at::full({2}, 2, at::kLong) : Tensor()});
    }
    DecoderState cache;
    auto states = model->decode(text.narrow(1, 0, 2), encoded, cache);  // the first two tokens in one call
    for (int64_t t = 2; t < 6; ++t) states = at::cat({states, model->decode(text.narrow(1, t, 1), encoded, cache)}, 1);
    CHECK(difference(states, whole) < 1e-12);
  }
}

TEST_CASE("a decoder ignores padding on the left", "[models][decoder]") {
  at::NoGradGuard no_grad;
  for (const auto& [name, config] : families()) {
    if (!backbone_of(config).is_decoder() || part_of<PrefixAttention>(config).prefix_lm) continue;
    if (!as<TransformerConfig>(config)) continue;  // nothing hides a token that was read
    INFO(name);
    auto model = make_exact(config);
    const auto text = some_ids(1, 6, 5);
    DecoderState alone, padded;
    const auto first = model->decode(text.narrow(1, 0, 4), {}, alone),
               then = model->decode(text.narrow(1, 4, 2), {}, alone);
    const auto mask = at::arange(9, at::kLong).ge(3).unsqueeze(0);
    const auto filled = at::cat({at::full({1, 3}, 4, at::kLong), text}, 1);
    CHECK(difference(model->decode(filled.narrow(1, 0, 7), {}, padded, mask.narrow(1, 0, 7)).narrow(1, 3, 4), first) <
          1e-6);
    CHECK(difference(model->decode(filled.narrow(1, 7, 2), {}, padded, mask), then) < 1e-6);
  }
}

TEST_CASE("decoder rows that share encoder states match rows with a copy each, in fp32 and double",
          "[models][decoder]") {
  at::NoGradGuard no_grad;
  for (const auto& [name, model_config] : families()) {
    const auto& config = backbone_of(model_config);
    if (!config.is_encoder_decoder()) continue;
    INFO(name);
    const auto exact = make_exact(model_config),
               fast = make(model_config);  // fp32 has a separate operator for few queries
    const auto text = some_ids(6, 5, 5);
    auto mask = at::ones({2, 7}, at::kBool);
    mask[1].narrow(0, 5, 2).fill_(false);
    const auto states = [&](Backbone& model, bool shared) {
      auto encoded = model.encode({.input_ids = some_ids(2, 7), .attention_mask = mask});
      if (!shared) encoded = {encoded.states.repeat_interleave(3, 0), encoded.mask.repeat_interleave(3, 0)};
      DecoderState cache;
      auto found = model.decode(text.narrow(1, 0, 3), encoded, cache);
      for (int64_t t = 3; t < 5; ++t) found = at::cat({found, model.decode(text.narrow(1, t, 1), encoded, cache)}, 1);
      return found.to(at::kDouble);
    };
    const auto wanted = states(*exact, false);
    CHECK(difference(states(*exact, true), wanted) < 1e-12);
    CHECK(difference(states(*fast, true), wanted) < 2e-5);
    CHECK(difference(states(*fast, false), wanted) < 2e-5);
    DecoderState cache;
    CHECK_THROWS_WITH(fast->decode(some_ids(5, 2), fast->encode({.input_ids = some_ids(2, 7)}), cache),
                      Catch::Contains("the 5 rows of the decoder are not a multiple of the 2 rows of the encoder"));
  }
}

TEST_CASE("attention is bidirectional within each row's prefix and causal after it", "[models][decoder]") {
  at::NoGradGuard no_grad;
  auto config = small(Gpt2Config{});
  config.prefix_lm = true;
  auto model = make_exact(config);
  const auto read = at::cat({some_ids(1, 6), some_ids(1, 6)});
  const auto states = [&](const Tensor& ids) {
    return model->hidden({.input_ids = ids, .prefix = at::tensor({int64_t{3}, int64_t{0}}, at::kLong)});
  };
  const auto before = states(read);
  for (int64_t position = 0; position < 6; ++position) {
    auto changed = read.clone();
    changed.select(1, position).fill_(22);
    const auto moved = (states(changed) - before).abs().amax(-1).gt(1e-9);  // [B, T]
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t t = 0; t < 6; ++t)
        CHECK(moved[row][t].item<bool>() == (t >= position || (row == 0 && position < 3)));
  }
}

TEST_CASE("a decoder ignores later tokens, padding of its source, and other rows", "[models][decoder]") {
  at::NoGradGuard no_grad;
  for (const auto& [name, model_config] : families()) {
    const auto& config = backbone_of(model_config);
    INFO(name);
    auto model = make_exact(model_config);
    const bool two = config.is_encoder_decoder();
    const auto run = [&](const Tensor& ids, const Tensor& mask, const Tensor& read) {
      return model->hidden(two ? Inputs{.input_ids = ids, .attention_mask = mask, .decoder_input_ids = read}
                               : Inputs{.input_ids = read});
    };
    const auto ids = some_ids(1, 5), read = some_ids(1, 6, 5);
    const auto alone = run(ids, {}, read);
    auto changed = read.clone();
    changed[0][4] = 22;
    CHECK(difference(run(ids, {}, changed).narrow(1, 0, 4), alone.narrow(1, 0, 4)) < 1e-12);
    CHECK(difference(run(ids, {}, changed).narrow(1, 4, 1), alone.narrow(1, 4, 1)) > 1e-3);
    if (!two) continue;
    const auto padded = at::cat({ids, at::full({1, 3}, config.pad_token_id, at::kLong)}, 1),
               mask = at::cat({at::ones({1, 5}, at::kBool), at::zeros({1, 3}, at::kBool)}, 1);
    CHECK(difference(run(padded, mask, read), alone) < 1e-12);
    const auto batched = run(at::cat({some_ids(1, 8, 3), padded}), at::cat({at::ones({1, 8}, at::kBool), mask}),
                             at::cat({some_ids(1, 6, 11), read}));
    CHECK(difference(batched[1], alone[0]) < 1e-12);
    auto other = ids.clone();
    other[0][2] = 22;
    CHECK(difference(run(other, {}, read), alone) > 1e-3);  // the source does matter
  }
}

TEST_CASE("the fused operators of every decoder give the values and gradients of the plain ones", "[models][decoder]") {
  for (const auto& [name, model_config] : families()) {
    const auto& config = backbone_of(model_config);
    INFO(name);
    auto model = make(model_config);
    model->train();
    const auto outcome = [&](bool fused) {
      set_fused(fused);
      for (auto [n, p] : collect_params(*model)) p.value().mutable_grad() = Tensor();
      Inputs in{.input_ids = some_ids(2, 7), .attention_mask = at::ones({2, 7}, at::kBool), .dropout_key = 9};
      in.attention_mask[0].narrow(0, 4, 3).fill_(false);
      if (config.is_encoder_decoder()) in.decoder_input_ids = some_ids(2, 6, 5);
      const auto states = model->hidden(in);
      (states * at::cos(at::arange(states.numel(), at::kFloat).view(states.sizes()))).sum().backward();
      std::vector<Tensor> all{states.detach()};
      for (auto [n, p] : collect_params(*model))
        all.push_back(p.value().grad().defined() ? p.value().grad().clone() : at::zeros_like(p.value()));
      set_fused(true);
      return all;
    };
    const auto fast = outcome(true), slow = outcome(false);
    const auto params = collect_params(*model);
    for (size_t i = 0; i < fast.size(); ++i) {
      INFO((i ? params[i - 1].name : "states"));
      CHECK(difference(fast[i], slow[i]) < 2e-4 * std::max(1.0, slow[i].abs().max().item<double>()));
    }
  }
}

TEST_CASE(
    "gradient checkpointing of decoders gives bitwise equal gradients, also for the encoder and the relative position "
    "bias",
    "[models][decoder]") {
  for (const auto& [name, model_config] : families()) {
    const auto& config = backbone_of(model_config);
    INFO(name);
    const auto gradients = [&, &chosen = config, &whole = model_config](bool checkpointing) {
      auto model = make(whole);
      model->train();
      model->set_gradient_checkpointing(checkpointing);
      FlatParameters flat(collect_params(*model), at::kCPU);
      Inputs in{.input_ids = some_ids(2, 9), .attention_mask = at::ones({2, 9}, at::kBool), .dropout_key = 77};
      in.attention_mask[1].narrow(0, 6, 3).fill_(false);
      if (chosen.is_encoder_decoder()) in.decoder_input_ids = some_ids(2, 5, 5);
      model->hidden(in).square().sum().backward();
      return flat.grads.clone();
    };
    const auto plain = gradients(false);
    CHECK(plain.abs().sum().item<double>() > 0);
    CHECK(at::equal(plain, gradients(true)));
  }
}

TEST_CASE("a T5 layer is its formula: unscaled scores, no biases, pre-norm RMS norms, a relative position bias",
          "[models][t5]") {
  at::NoGradGuard no_grad;
  auto config = small(T5Config{});
  config.num_hidden_layers = config.num_decoder_layers = 1;
  auto model = make_exact(config);
  std::map<std::string, Tensor> w;
  for (const auto& [name, param] : collect_params(*model)) w[name] = param.value().detach();
  const auto ids = some_ids(1, 6);
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return x / (x.square().mean(-1, true) + 1e-6).sqrt() * w.at(name + ".weight");
  };
  const int64_t heads = 3, width = 6;
  auto x = w.at("embeddings.word").index_select(0, ids[0]);  // [T, D]
  const auto y = norm(x, "encoder.0.attention_norm");
  const auto qkv = at::matmul(y, w.at("encoder.0.attention.qkv.weight").t());  // [T, 3 H C]
  std::vector<Tensor> mixed;
  for (int64_t h = 0; h < heads; ++h) {
    const auto part = [&](int64_t k) { return qkv.narrow(1, (k * heads + h) * width, width); };
    auto scores = at::matmul(part(0), part(1).t());
    for (int64_t t = 0; t < 6; ++t)
      for (int64_t s = 0; s < 6; ++s)
        scores[t][s] += w.at("encoder.relative_attention_bias")[std::abs(s - t) + (s > t ? 16 : 0)][h];
    mixed.push_back(at::matmul(at::softmax(scores, -1), part(2)));
  }
  x = x + at::matmul(at::cat(mixed, 1), w.at("encoder.0.attention.output.weight").t());
  x = x + at::matmul(at::relu(at::matmul(norm(x, "encoder.0.output_norm"), w.at("encoder.0.intermediate.weight").t())),
                     w.at("encoder.0.output.weight").t());
  CHECK(difference(model->encode({.input_ids = ids}).states[0], norm(x, "encoder.final_norm")) < 1e-12);
}

TEST_CASE("a model that cannot generate is rejected with a message", "[models][decoder]") {
  const auto rejected = [](const ModelConfig& config, const std::string& sentence) {
    DecoderState cache;
    const EncoderOutput encoded{at::zeros({1, 2, 12}), {}};
    CHECK_THROWS_WITH(make_backbone(config, {})->decode(some_ids(1, 2), encoded, cache), sentence);
  };
  rejected(small(BertConfig{}),
           "this model is bidirectional, so it generates no text; train one with model.architecture: "
           "decoder or encoder_decoder, or fill masks with `cloze fill`");
  const auto no_cache =
      "this model's attention has no key-value cache, so it generates no text; train one with model.attention.kind: "
      "full, model.relative_positions: 0 and a position table";
  auto estimates = small(Gpt2Config{}), flat = small(Gpt2Config{});
  auto relative = small(VaswaniConfig{});
  estimates.attention = PerformerAttention{.nb_features = 4};
  relative.positions = {PositionTable::sinusoidal, ShawVectors{3}};
  flat.num_hidden_layers = 0;
  rejected(estimates, no_cache);
  rejected(relative, no_cache);
  rejected(flat, "a decoder without layers has no key-value cache; raise model.num_hidden_layers");
  auto pair = small(T5Config{});
  pair.num_hidden_layers = pair.num_decoder_layers = 0;
  rejected(pair, "a decoder without layers has no key-value cache; raise model.num_decoder_layers");
}
