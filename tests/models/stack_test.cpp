#include <cmath>

#include "models/attention/attention.h"
#include "models/families/albert.h"
#include "models/families/backbone.h"
#include "models/families/modernbert.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

/// Every option of the stack that changes its output, one or two at a time.
std::vector<std::pair<std::string, BertConfig>> choices() {
  std::vector<std::pair<std::string, BertConfig>> list;
  const auto add = [&](const std::string& name, const std::function<void(BertConfig&)>& change) {
    list.emplace_back(name, small());
    change(list.back().second);
  };
  add("plain", [](auto&) {});
  add("pre-norm", [](auto& c) { c.norm_place = NormPlacement::pre; });
  add("rms", [](auto& c) {
    c.norm_kind = NormKind::rms;
    c.layer_norm_eps = 1e-6;
  });
  add("pre-norm, rms, gated", [](auto& c) {
    c.norm_place = NormPlacement::pre;
    c.norm_kind = NormKind::rms;
    c.feed_forward = FeedForward::gated;
    c.hidden_act = Activation::silu;
  });
  add("gated", [](auto& c) { c.feed_forward = FeedForward::gated; });
  add("relative", [](auto& c) { c.positions = ShawVectors{3}; });
  add("relative_key", [](auto& c) { c.positions = RelativeKeys{}; });
  add("relative_key_query", [](auto& c) { c.positions = RelativeKeys{.with_keys = true}; });
  add("no positions", [](auto& c) { c.positions = PositionTable::none; });
  add("sinusoidal", [](auto& c) { c.positions = PositionTable::sinusoidal; });
  add("rotary", [](auto& c) { c.positions = Rotary{}; });
  add("alibi", [](auto& c) { c.positions = Alibi{}; });
  add("alternating",
      [](auto& c) { c.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = 4}; });
  add("alternating, rotary, pre-norm, without biases", [](auto& c) {
    c.attention = AlternatingAttention{.global_layers = {1}, .local_attention = 7};
    c.positions = Rotary{};
    c.norm_place = NormPlacement::pre;
    c.feed_forward = FeedForward::gated;
    c.attention_bias = c.mlp_bias = c.norm_bias = c.first_attention_norm = false;
  });
  add("layer norm without bias", [](auto& c) { c.norm_bias = false; });
  add("window", [](auto& c) {
    c.attention = WindowAttention{.attention_window = {4, 6},
                                  .attention_dilation = {1, 2},
                                  .dilated_heads = 1,
                                  .global_tokens = GlobalTokens::first};
  });
  add("performer", [](auto& c) { c.attention = PerformerAttention{.nb_features = 16}; });
  add("performer, relu", [](auto& c) {
    c.attention = PerformerAttention{.nb_features = 16, .kernel = FeatureKernel::relu, .kernel_epsilon = 1e-3};
  });
  add("performer, trigonometric",
      [](auto& c) { c.attention = PerformerAttention{.nb_features = 64, .kernel = FeatureKernel::trigonometric}; });
  add("linformer", [](auto& c) { c.attention = LinformerAttention{}; });
  add("linformer, shared",
      [](auto& c) { c.attention = LinformerAttention{.compressed = 8, .shared_kv_compressed = true}; });
  add("bigbird", [](auto& c) { c.attention = BigBirdAttention{.block_size = 3, .num_random_blocks = 1}; });
  return list;
}

/// The parameters of a layer in double, by name.
struct Weights {
  explicit Weights(const Layer& layer) {
    for (const auto& [name, param] : collect_params(layer)) all[name] = param.value().detach().to(at::kDouble);
  }
  Tensor linear(const Tensor& x, const std::string& name) const {
    return at::linear(x, all.at(name + ".weight"), all.at(name + ".bias"));
  }
  std::map<std::string, Tensor> all;
};

}  // namespace

TEST_CASE("fused and plain operators give the same values and gradients for every option of the stack",
          "[models][stack]") {
  for (const auto& [name, config] : choices()) {
    INFO(name);
    const auto run = [&, &chosen = config](bool fused) {
      set_fused(fused);
      auto model = make(chosen);
      FlatParameters flat(collect_params(*model), at::kCPU);
      const auto mask = at::ones({2, 17}, at::kBool);
      mask[1].narrow(0, 12, 5).fill_(false);
      const auto hidden = model->hidden({.input_ids = some_ids(2, 17), .attention_mask = mask, .dropout_key = 3});
      (hidden * numbers(hidden.sizes(), 0.2) * mask.unsqueeze(-1)).sum().backward();
      set_fused(true);
      return std::pair{hidden.detach() * mask.unsqueeze(-1), flat.grads.clone()};
    };
    const auto a = run(true), b = run(false);
    CHECK(error_of(a.first, b.first) < 1e-5);
    CHECK(error_of(a.second, b.second) < 1e-4);
    CHECK(b.second.abs().sum().item<double>() > 1);
  }
}

TEST_CASE("with read_positions the last block gives the same values and gradients for those positions",
          "[models][stack]") {
  const auto read_positions = at::tensor({0, 4, 5, 16, 17, 20, 28}, at::kLong);
  for (const auto& [name, config] : choices()) {
    for (const bool fused : {false, true}) {
      INFO(name << (fused ? ", fused" : ", plain"));
      const auto run = [&, &chosen = config](const Tensor& read, bool again) {
        set_fused(fused);
        auto model = make(chosen);
        model->set_gradient_checkpointing(again);
        FlatParameters flat(collect_params(*model), at::kCPU);
        const auto mask = at::ones({2, 17}, at::kBool);
        mask[1].narrow(0, 12, 5).fill_(false);
        const auto hidden =
            model
                ->hidden(
                    {.input_ids = some_ids(2, 17), .attention_mask = mask, .read_positions = read, .dropout_key = 3})
                .flatten(0, 1)
                .index_select(0, read_positions);
        (hidden * numbers(hidden.sizes(), 0.2)).sum().backward();
        set_fused(true);
        return std::pair{hidden.detach(), flat.grads.clone()};
      };
      const auto [all, all_grads] = run({}, false);
      for (const bool again : {false, true}) {
        const auto [few, few_grads] = run(read_positions, again);
        CHECK(error_of(few, all) < 1e-5);
        CHECK(error_of(few_grads, all_grads) < 1e-5);
      }
    }
  }
}

TEST_CASE("read_positions may be empty", "[models][stack]") {
  auto model = make(small());
  FlatParameters flat(collect_params(*model), at::kCPU);
  const auto hidden = model->hidden({.input_ids = some_ids(2, 17), .read_positions = at::empty({0}, at::kLong)});
  hidden.sum().backward();
  CHECK(hidden.sizes() == at::IntArrayRef{2, 17, 12});
  CHECK(flat.grads.abs().max().item<double>() == 0);
}

TEST_CASE("padding does not change the states of real tokens, for every option of the stack", "[models][stack]") {
  at::NoGradGuard no_grad;
  for (const auto& [name, config] : choices()) {
    if (name == "bigbird") continue;  // its last block depends on the padded length, as in the published code
    INFO(name);
    auto model = make(config);
    const auto ids = some_ids(2, 11);
    const auto mask = at::cat({at::ones({2, 11}, at::kBool), at::zeros({2, 8}, at::kBool)}, 1);
    const auto padded =
        model->hidden({.input_ids = at::cat({ids, at::full({2, 8}, 5, at::kLong)}, 1), .attention_mask = mask});
    CHECK(error_of(padded.narrow(1, 0, 11), model->hidden({.input_ids = ids})) < 2e-5);
  }
}

TEST_CASE("a block is the papers' formula: post-norm or pre-norm, layer or RMS norm, gated or not", "[models][stack]") {
  at::NoGradGuard no_grad;
  for (const std::string placement : {"post", "pre"})
    for (const std::string kind : {"layer", "rms"})
      for (const std::string feed : {"plain", "gated"}) {
        INFO(placement << " " << kind << " " << feed);
        auto config = small();
        config.norm_place = choice_of<NormPlacement>(placement);
        config.norm_kind = choice_of<NormKind>(kind);
        config.feed_forward = choice_of<FeedForward>(feed);
        config.num_hidden_layers = 1;
        config.layer_norm_eps = 1e-5;
        auto model = make(config);
        Traces traces;
        const auto got = model->hidden({.input_ids = some_ids(2, 7)}, &traces);
        const Weights w(*model);
        const auto norm = [&](const Tensor& x, const std::string& name) {
          const auto centred = kind == "rms" ? x : x - x.mean(-1, true);
          const auto scaled = centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * w.all.at(name + ".weight");
          return kind == "rms" ? scaled : scaled + w.all.at(name + ".bias");
        };
        const auto attention = [&](const Tensor& x) {
          const auto parts =
              w.linear(x, "stack.0.attention.qkv").view({2, 7, 3, 3, 4}).permute({2, 0, 3, 1, 4});  // [3, B, H, T, C]
          const auto p = at::softmax(at::matmul(parts[0], parts[1].transpose(-1, -2)) / 2.0, -1);   // sqrt(4)
          return w.linear(at::matmul(p, parts[2]).transpose(1, 2).flatten(2), "stack.0.attention.output");
        };
        const auto feed_forward = [&](const Tensor& x) {
          auto inner = w.linear(x, "stack.0.intermediate");
          inner = 0.5 * inner * (1 + at::erf(inner / std::sqrt(2.0)));
          return w.linear(feed == "gated" ? inner * w.linear(x, "stack.0.gate") : inner, "stack.0.output");
        };
        const auto x = traces.encoder.hidden_states[0].to(at::kDouble);
        Tensor wanted;
        if (placement == "post") {
          const auto a = norm(x + attention(x), "stack.0.attention_norm");
          wanted = norm(a + feed_forward(a), "stack.0.output_norm");
        } else {
          const auto a = x + attention(norm(x, "stack.0.attention_norm"));
          wanted = norm(a + feed_forward(norm(a, "stack.0.output_norm")), "stack.final_norm");
        }
        CHECK(error_of(got, wanted) < 1e-5);
      }
}

TEST_CASE("ModernBERT is the paper's formula: rotations, windows and norms of each layer", "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small<ModernBertConfig>();
  config.num_hidden_layers = 4;
  AlternatingAttention alternating{.local_attention = 5, .global_rope_theta = 100, .local_rope_theta = 7};
  SECTION("every third layer") {}
  SECTION("named layers") { alternating.global_layers = {1, 2}; }
  config.attention = alternating;
  const auto model = make(config);
  const int64_t length = 9, heads = 3, width = 4;
  const auto mask = at::arange(length, at::kLong).ne(4).unsqueeze(0);
  Traces traces;
  const auto got = model->hidden({.input_ids = some_ids(1, length), .attention_mask = mask}, &traces);
  const Weights w(*model);
  CHECK(w.all.count("stack.0.attention_norm.weight") == 0);
  CHECK(w.all.count("embeddings.position") == 0);
  for (const auto& [name, value] : w.all) CHECK_FALSE(name.ends_with("bias"));
  const auto norm = [&](const Tensor& x, const std::string& name) {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * w.all.at(name + ".weight");
  };
  const auto times = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, w.all.at(name + ".weight"));
  };
  const auto attention = [&](const Tensor& x, int64_t layer) {
    const bool global = alternating.global_layers.empty() ? layer % 3 == 0 : layer == 1 || layer == 2;
    const auto block = "stack." + std::to_string(layer) + ".attention.";
    auto qkv = times(x, block + "qkv").view({length, 3, heads, width}).contiguous();
    for (int64_t t = 0; t < length; ++t)
      for (int64_t part = 0; part < 2; ++part)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t i = 0; i < width / 2; ++i) {
            auto row = qkv[t][part][h];
            const double u = row[i].item<double>(), v = row[i + width / 2].item<double>();
            const double angle = static_cast<double>(t) * std::pow(global ? 100 : 7, -2.0 * static_cast<double>(i) / 4);
            row[i] = u * std::cos(angle) - v * std::sin(angle);
            row[i + width / 2] = v * std::cos(angle) + u * std::sin(angle);
          }
    auto mixed = at::zeros({length, heads * width}, at::kDouble);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < length; ++t) {
        double total = 0;
        auto sum = at::zeros({width}, at::kDouble);
        for (int64_t s = 0; s < length; ++s) {
          if (s == 4 || (!global && std::abs(s - t) > 2)) continue;
          const double e = std::exp((qkv[t][0][h] * qkv[s][1][h]).sum().item<double>() / 2);
          total += e;
          sum += e * qkv[s][2][h];
        }
        mixed[t].narrow(0, h * width, width).copy_(sum / total);
      }
    return times(mixed, block + "output");
  };
  auto x = norm(w.all.at("embeddings.word").index_select(0, some_ids(1, length)[0]), "embeddings.norm");
  CHECK(error_of(traces.encoder.hidden_states[0][0], x) < 1e-5);
  for (int64_t layer = 0; layer < 4; ++layer) {
    const auto block = "stack." + std::to_string(layer) + ".";
    x = x + attention(layer == 0 ? x : norm(x, block + "attention_norm"), layer);
    const auto in = norm(x, block + "output_norm");
    const auto activated = at::gelu(times(in, block + "intermediate")) * times(in, block + "gate");
    x = x + times(activated, block + "output");
  }
  const auto real = mask[0].unsqueeze(-1);
  CHECK(error_of(got[0] * real, norm(x, "stack.final_norm") * real) < 1e-5);
}

TEST_CASE("rotary angles do not depend on the table's length, and continue after cached tokens", "[models][stack]") {
  const RotaryTable one(10000, 6), other(10000, 6);
  const auto x = [](int64_t length) { return at::zeros({2, length, 5}); };
  const auto whole = one.of(x(300)).clone();
  CHECK(whole.sizes() == at::IntArrayRef{300, 6});
  CHECK(at::equal(other.of(x(3)), whole.narrow(0, 0, 3)));
  CHECK(at::equal(other.of(x(7), at::zeros({2, 70, 4})), whole.narrow(0, 70, 7)));
  CHECK(whole[299][2].item<double>() == Approx(std::cos(299 * std::pow(10000.0, -4.0 / 6))).margin(1e-5));
  CHECK(whole[299][5].item<double>() == Approx(std::sin(299 * std::pow(10000.0, -4.0 / 6))).margin(1e-5));
}

TEST_CASE("rotary positions are refused with attention that does not rotate, and with heads of odd width",
          "[models][stack]") {
  auto config = small();
  config.positions = Rotary{};
  config.attention = PerformerAttention{.nb_features = 4};
  CHECK_THROWS_WITH(make_backbone(config, {}), Catch::Contains("rotary needs attention of kind full or alternating"));
  config.attention = FullAttention{};
  config.num_attention_heads = 4;
  CHECK_THROWS_WITH(make_backbone(config, {}), Catch::Contains("heads of width 3 are odd"));
}

TEST_CASE("relative positions are Shaw's equations, as loops", "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small();
  config.positions = {PositionTable::learned, ShawVectors{2}};
  config.causal = GENERATE(false, true);
  const auto attention = attention_of(config, 0);
  initialize(collect_params(*attention), 0.3, false, Rng(2));
  const auto x = numbers({1, 6, 12}, 0.3);
  const auto mask = at::tensor({1, 1, 1, 0, 1, 1}, at::kInt).to(at::kBool).view({1, 6});
  const auto got = attention->mix(x, {.key_mask = mask, .causal = config.causal}, {});
  const Weights w(*attention);
  const auto qkv = w.linear(x.to(at::kDouble), "qkv")[0];
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 6; ++i) {
      const auto q = qkv[i].narrow(0, 4 * h, 4);
      std::vector<double> e(6);
      auto z = at::zeros({4}, at::kDouble);
      double total = 0;
      const auto near = [](int64_t d) { return std::clamp<int64_t>(d, -2, 2) + 2; };
      for (int64_t j = 0; j < 6; ++j) {
        const auto key = qkv[j].narrow(0, 12 + 4 * h, 4) + w.all.at("distance_key")[near(j - i)];
        e[j] = mask[0][j].item<bool>() && (!config.causal || j <= i) ? std::exp((q * key).sum().item<double>() / 2) : 0;
        total += e[j];
      }
      for (int64_t j = 0; j < 6; ++j)
        z += e[j] / total * (qkv[j].narrow(0, 24 + 4 * h, 4) + w.all.at("distance_value")[near(j - i)]);
      CHECK(error_of(got[0][i].narrow(0, 4 * h, 4), z) < 1e-5);
    }
}

TEST_CASE("relative_key and relative_key_query are their formulas, as loops", "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small();
  const bool with_keys = GENERATE(false, true);
  config.positions = RelativeKeys{with_keys};
  config.causal = GENERATE(false, true);
  config.max_position_embeddings = 7;  // one more than the tokens
  const auto attention = attention_of(config, 0);
  initialize(collect_params(*attention), 0.3, false, Rng(2));
  const auto x = numbers({1, 6, 12}, 0.3);
  const auto mask = at::tensor({1, 1, 1, 0, 1, 1}, at::kInt).to(at::kBool).view({1, 6});
  const auto got = attention->mix(x, {.key_mask = mask, .causal = config.causal}, {});
  const Weights w(*attention);
  const auto qkv = w.linear(x.to(at::kDouble), "qkv")[0], vectors = w.all.at("distance");
  REQUIRE(vectors.size(0) == 13);
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 6; ++i) {
      const auto q = qkv[i].narrow(0, 4 * h, 4);
      auto sum = at::zeros({4}, at::kDouble);
      double total = 0;
      for (int64_t j = 0; j < 6; ++j) {
        if (!mask[0][j].item<bool>() || (config.causal && j > i)) continue;
        const auto k = qkv[j].narrow(0, 12 + 4 * h, 4), a = vectors[i - j + 6];
        auto score = (q * k).sum() + (q * a).sum();
        if (with_keys) score += (k * a).sum();
        const double e = std::exp(score.item<double>() / 2);
        sum += e * qkv[j].narrow(0, 24 + 4 * h, 4);
        total += e;
      }
      CHECK(error_of(got[0][i].narrow(0, 4 * h, 4), sum / total) < 1e-5);
    }
}

TEST_CASE("ALiBi lowers each head's scores by its slope times the distance, as loops in double", "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small();
  config.positions = Alibi{};
  config.causal = GENERATE(false, true);
  Layer stack;
  const auto positions = make_positions(config, config.causal, stack);
  const auto attention = make_attention(config, 0, *positions);
  initialize(collect_params(*attention), 0.3, false, Rng(2));
  convert_params(*attention, at::kDouble);
  const auto x = numbers({1, 6, 12}, 0.3).to(at::kDouble);
  const auto mask = at::tensor({1, 1, 1, 0, 1, 1}, at::kInt).to(at::kBool).view({1, 6});
  const auto got = attention->mix(
      x, {.key_mask = mask, .causal = config.causal, .distance_bias = positions->distance_bias(x, {})}, {});
  const auto qkv = Weights(*attention).linear(x, "qkv")[0];
  const double slopes[] = {1.0 / 16, 1.0 / 256, 1.0 / 4};  // those of two heads, then the first of four
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 6; ++i) {
      auto sum = at::zeros({4}, at::kDouble);
      double total = 0;
      for (int64_t j = 0; j < 6; ++j) {
        if (!mask[0][j].item<bool>() || (config.causal && j > i)) continue;
        const auto product = (qkv[i].narrow(0, 4 * h, 4) * qkv[j].narrow(0, 12 + 4 * h, 4)).sum().item<double>();
        const double e = std::exp(product / 2 - slopes[h] * std::abs(static_cast<double>(i - j)));
        sum += e * qkv[j].narrow(0, 24 + 4 * h, 4);
        total += e;
      }
      CHECK(error_of(got[0][i].narrow(0, 4 * h, 4), sum / total) < 1e-12);
    }
}

TEST_CASE("Linformer projects the sequence, adds the biases, then attends to the projected positions",
          "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small();
  config.attention = LinformerAttention{.compressed = 8};  // 5 projected positions
  const auto attention = attention_of(config, 0);
  initialize(collect_params(*attention), 0.3, false, Rng(2));
  const auto x = numbers({2, 9, 12}, 0.3);
  auto mask = at::ones({2, 9}, at::kBool);
  mask[1].narrow(0, 6, 3).fill_(false);
  const auto got = attention->mix(x, {.key_mask = mask}, {});
  const Weights w(*attention);
  for (int64_t b = 0; b < 2; ++b) {
    const auto rows = x[b].to(at::kDouble), real = rows * mask[b].unsqueeze(-1);
    const auto weight = w.all.at("qkv.weight"), bias = w.all.at("qkv.bias");
    const auto q = at::linear(real, weight.narrow(0, 0, 12), bias.narrow(0, 0, 12));
    const auto k = at::linear(at::matmul(w.all.at("compress_key").narrow(1, 0, 9), real), weight.narrow(0, 12, 12),
                              bias.narrow(0, 12, 12));  // fairseq's order: hidden states first
    const auto v = at::linear(at::matmul(w.all.at("compress_value").narrow(1, 0, 9), real), weight.narrow(0, 24, 12),
                              bias.narrow(0, 24, 12));
    for (int64_t h = 0; h < 3; ++h) {
      const auto head = [&](const Tensor& t) { return t.narrow(1, 4 * h, 4); };
      const auto wanted = at::matmul(at::softmax(at::matmul(head(q), head(k).t()) / 2.0, -1), head(v));
      CHECK(error_of(got[b].narrow(1, 4 * h, 4), wanted) < 1e-5);
    }
  }
}

TEST_CASE(
    "BigBird's queries attend to the global blocks, their window and random blocks, each counted once, by softmax",
    "[models][stack]") {
  const int64_t block = 3, random = 2, length = 35, blocks = 12;  // the last block is short
  auto config = small();
  config.attention = BigBirdAttention{.block_size = block, .num_random_blocks = random};
  const auto attention = attention_of(config, 1);
  initialize(collect_params(*attention), 0.3, false, Rng(2));
  const auto x = numbers({1, length, 12}, 0.3).set_requires_grad(true);
  const auto got = attention->mix(x, {}, {});  // [1, T, D]
  const auto qkv = Weights(*attention).linear(x.detach().to(at::kDouble), "qkv")[0];
  std::set<std::string> patterns;
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t t = 0; t < length; ++t) {
      x.mutable_grad() = Tensor();
      got[0][t].narrow(0, 4 * h, 4).sum().backward({}, /*retain_graph=*/true);
      auto attended = x.grad()[0].abs().sum(-1).gt(1e-9);
      attended[t] = true;  // a query always attends to its own block
      const int64_t i = t / block;
      std::set<int64_t> found;
      for (int64_t s = 0; s < length; ++s)
        if (attended[s].item<bool>()) found.insert(s / block);
      for (const int64_t j : {int64_t{0}, blocks - 1, i, std::max<int64_t>(i - 1, 0), std::min(i + 1, blocks - 1)})
        CHECK(found.count(j) == 1);
      const std::set<int64_t> fixed{0, blocks - 1, i, std::max<int64_t>(i - 1, 0), std::min(i + 1, blocks - 1)};
      CHECK(found.size() == (i == 0 || i == blocks - 1 ? blocks : fixed.size() + random));
      std::string pattern;
      for (const auto j : found) pattern += std::to_string(j) + " ";
      if (i == 5 && t % block == 0) patterns.insert(pattern);
      auto visible = at::zeros({length}, at::kBool);
      for (int64_t s = 0; s < length; ++s) visible[s] = found.count(s / block) > 0;
      const auto scores = at::matmul(qkv.narrow(1, 12 + 4 * h, 4), qkv[t].narrow(0, 4 * h, 4)) / 2.0;
      const auto wanted =
          at::matmul(at::softmax(scores.masked_fill(visible.logical_not(), -1e30), -1), qkv.narrow(1, 24 + 4 * h, 4));
      CHECK(error_of(got[0][t].narrow(0, 4 * h, 4), wanted) < 1e-5);
    }
  CHECK(patterns.size() > 1);  // every head has different random blocks
}

TEST_CASE("BigBird is full attention on short texts, and ignores padded keys", "[models][stack]") {
  at::NoGradGuard no_grad;
  auto config = small();
  const auto full = attention_of(config, 0);
  config.attention = BigBirdAttention{.block_size = 4, .num_random_blocks = 2};
  const auto blocks = attention_of(config, 0);
  for (const auto& layer : {full, blocks}) initialize(collect_params(*layer), 0.3, false, Rng(2));
  for (const int64_t length : {1, 4, 5, 24}) {  // up to 4 + r blocks
    const auto x = numbers({2, length, 12}, 0.3);
    auto mask = at::ones({2, length}, at::kBool);
    if (length > 4) mask[1].narrow(0, length - 3, 3).fill_(false);
    INFO(length);
    CHECK(error_of(blocks->mix(x, {.key_mask = mask}, {}), full->mix(x, {.key_mask = mask}, {})) < 1e-5);
  }
}

TEST_CASE("Performer features are redrawn at their interval, as a function of seed and step", "[models][stack]") {
  auto config = small();
  config.attention = PerformerAttention{.nb_features = 8, .feature_redraw_interval = 5};
  const auto features = [](const Layer& model) {
    std::vector<Tensor> tensors;
    for (const auto& [name, param] : collect_params(model))
      if (name.find("features") != std::string::npos) tensors.push_back(param.value().detach().clone());
    return tensors;
  };
  auto a = make(config), b = make(config);
  const auto first = features(*a);
  REQUIRE(first.size() == 2);
  CHECK_FALSE(at::equal(first[0], first[1]));  // every layer has different features
  for (int64_t step = 0; step <= 9; ++step) a->before_step(step, Rng(1));
  b->before_step(5, Rng(1));
  CHECK_FALSE(at::equal(features(*a)[0], first[0]));
  CHECK(at::equal(features(*a)[1], features(*b)[1]));
  b->before_step(10, Rng(1));
  CHECK_FALSE(at::equal(features(*a)[1], features(*b)[1]));
}

TEST_CASE("ALBERT's layers share all, attention, feed-forward or no weights within their group", "[models][stack]") {
  const auto shape = [](const std::string& share, int64_t layers, int64_t groups, int64_t inner) {
    auto config = small<AlbertConfig>();
    config.share = choice_of<Sharing>(share);
    config.num_hidden_layers = layers, config.num_hidden_groups = groups, config.inner_group_num = inner;
    int64_t attention = 0, feed = 0;
    for (const auto& [name, param] : collect_params(*make_backbone(config, {}))) {
      attention += name.find("attention.qkv.weight") != std::string::npos;
      feed += name.find("intermediate.weight") != std::string::npos;
    }
    return std::pair{attention, feed};
  };
  CHECK(shape("all", 6, 1, 1) == std::pair<int64_t, int64_t>{1, 1});
  CHECK(shape("attention", 6, 1, 1) == std::pair<int64_t, int64_t>{1, 6});
  CHECK(shape("ffn", 6, 1, 1) == std::pair<int64_t, int64_t>{6, 1});
  CHECK(shape("none", 6, 1, 1) == std::pair<int64_t, int64_t>{6, 6});
  CHECK(shape("all", 6, 2, 2) == std::pair<int64_t, int64_t>{4, 4});
  CHECK(shape("attention", 6, 3, 1) == std::pair<int64_t, int64_t>{3, 6});
  // Shared weights are used in every layer: three unshared layers with equal weights match one shared layer.
  at::NoGradGuard no_grad;
  auto config = small<AlbertConfig>();
  config.num_hidden_layers = 3;
  const auto run = [&](const std::string& share) {
    config.share = choice_of<Sharing>(share);
    auto model = make_backbone(config, {});
    for (const auto& [name, param] : collect_params(*model)) {
      const auto part = name.substr(name.find('.', name.rfind("stack.") == std::string::npos ? 0 : 6) +
                                    1);  // without the layer's number
      param.value().copy_(numbers(param.value().sizes(), static_cast<double>(name_hash(part) % 97)) * 0.3);
    }
    return model->hidden({.input_ids = some_ids(2, 5)});
  };
  for (const std::string share : {"attention", "ffn", "none"}) CHECK(error_of(run(share), run("all")) < 1e-6);
}

TEST_CASE("sinusoidal position embeddings are the formula, and are not trained", "[models][stack]") {
  auto config = small();
  config.positions = PositionTable::sinusoidal;
  auto model = make(config);
  for (const auto& [name, param] : collect_params(*model)) {
    if (name != "embeddings.position") continue;
    CHECK(param.fixed());
    for (const int64_t position : {0, 1, 39})
      for (const int64_t column : {0, 1, 6, 11}) {
        const double angle =
            static_cast<double>(position) / std::pow(10000.0, 2.0 * static_cast<double>(column / 2) / 12);
        CHECK(param.value()[position][column].item<double>() ==
              Approx(column % 2 == 0 ? std::sin(angle) : std::cos(angle)).margin(1e-6));
      }
  }
  FlatParameters flat(collect_params(*model), at::kCPU);
  model->hidden({.input_ids = some_ids(2, 5)}).square().sum().backward();
  for (const auto& range : flat.ranges())
    if (range.param.name == "embeddings.position")
      CHECK(flat.grads.narrow(0, range.offset, range.numel).abs().sum().item<double>() == 0);
}
