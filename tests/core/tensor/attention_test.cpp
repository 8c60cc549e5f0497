#include <ATen/Parallel.h>

#include "core/kernels/kernels.h"
#include "core/tensor/fused.h"
#include "core/tensor/param.h"
#include "core/tensor/plain.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"
#include "tests/support/naive.h"

using namespace cloze;

TEST_CASE("fused attention equals its plain form for any width and length, with masks, causal, with dropout",
          "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const int64_t head_width : {7, 16, 40, 64})
    for (const int64_t length : {1, 5, 13, 50, 131})
      for (const bool causal : {false, true})
        for (const bool masked : {false, true})
          for (const double p : {0.0, 0.2}) {
            const int64_t heads = 2, width = heads * head_width;
            INFO(isa << " C " << head_width << " T " << length << " causal " << causal << " masked " << masked << " p "
                     << p);
            const auto qkv = numbers({2, length, 3 * width}, 0.1, 2);
            const auto bias = param({3 * width}, 0.5);
            AttentionContext context{.causal = causal};
            if (masked) {
              context.key_mask = at::ones({2, length}, at::kBool);
              context.key_mask[0]
                  .narrow(0, length / 2, length - length / 2)
                  .fill_(false);  // length 1: all keys of the query are masked
            }
            const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
            compare([&](auto& in) { return fused::self_attention(in[0], bias, heads, context, drop); },
                    [&](auto& in) { return plain::self_attention(in[0], bias, heads, context, drop); }, {qkv}, {bias},
                    type);
          }
}

TEST_CASE("a bias shared by all keys has no gradient except for rounding, however large the scores",
          "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const int64_t length = 40, heads = 2, width = 48;
  auto context = GENERATE(AttentionContext{}, AttentionContext{.causal = true}, AttentionContext{.window = 18});
  if (context.window > 0) context.key_mask = at::ones({3, length}, at::kBool);
  for (const double p : {0.0, 0.2}) {
    auto qkv = numbers({3, length, 3 * width}, 0.1, 2);
    qkv.narrow(2, 0, 2 * width).mul_(4);  // scores of some tens
    const auto dout = numbers({3, length, width}, 0.3, 1) + 1;
    const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
    const auto x = qkv.clone().requires_grad_(true);
    fused::self_attention(x, Param(), heads, context, drop).backward(dout);
    const auto keys = x.grad().narrow(2, width, width);
    INFO(isa << " causal " << context.causal << " window " << context.window << " p " << p);
    CHECK(keys.sum(at::IntArrayRef({0, 1})).abs().max().item<double>() <
          1e-6 * keys.abs().sum(at::IntArrayRef({0, 1})).max().item<double>());
  }
}

TEST_CASE("plain attention equals the paper's equation, written as loops", "[kernels][attention]") {
  const int64_t length = 6, heads = 2, head_width = 5, width = heads * head_width;
  const auto qkv = numbers({1, length, 3 * width}, 0.1, 2).to(at::kDouble);
  const auto mask = at::tensor({1, 1, 0, 1, 1, 0}, at::kInt).to(at::kBool).view({1, 6});
  const Dropout drop{.p = 0.25, .key = 3, .site = 1, .active = true};
  const auto factors = plain::dropout_mask({1, heads, length, length}, drop, at::kCPU);
  const auto got = plain::self_attention(qkv, Param(), heads, {.key_mask = mask, .causal = true}, drop);
  for (int64_t h = 0; h < heads; ++h) {
    naive::Matrix part[3], f(length, naive::Row(length));
    std::vector<std::vector<bool>> visible(length, std::vector<bool>(length));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t k = 0; k < 3; ++k) {
        part[k].emplace_back();
        for (int64_t c = 0; c < head_width; ++c)
          part[k][t].push_back(qkv[0][t][k * width + h * head_width + c].item<double>());
      }
      for (int64_t s = 0; s < length; ++s)
        visible[t][s] = s <= t && mask[0][s].item<bool>(), f[t][s] = factors[0][h][t][s].item<double>();
    }
    const auto wanted = naive::attention(part[0], part[1], part[2], visible, f);
    for (int64_t t = 0; t < length; ++t)
      for (int64_t c = 0; c < head_width; ++c)
        CHECK(got[0][t][h * head_width + c].item<double>() == Approx(wanted[t][c]).margin(1e-7));
  }
}

namespace {

/// Attention in a window by the formula, with a full [T, T] mask. x [B, T, 3 D] with the bias added.
Tensor slow_window(const Tensor& x, int64_t heads, const Tensor& real, const Tensor& global,
                   const AttentionContext& context) {
  const int64_t length = x.size(1), width = x.size(2) / 3 / heads;
  const auto parts = x.to(at::kDouble).view({x.size(0), length, 3, heads, width}).permute({2, 0, 3, 1, 4});
  const auto position = at::arange(length, at::kLong);
  const auto distance = (position.unsqueeze(1) - position.unsqueeze(0)).abs();
  std::vector<Tensor> by_head;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t step = context.dilated_heads == 0 || h < context.dilated_heads ? context.dilation : 1;
    by_head.push_back(distance.le(context.window * step)
                          .logical_and(distance.remainder(step).eq(0))
                          .unsqueeze(0)
                          .logical_or(global.unsqueeze(1))
                          .logical_and(real.unsqueeze(1)));
  }
  const auto mask = at::stack(by_head, 1);  // [B, H, T, T]
  const auto scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(width));
  const auto p = at::softmax(scores.masked_fill(mask.logical_not(), -1e30), -1).masked_fill(mask.logical_not(), 0);
  return at::matmul(p, parts[2]).transpose(1, 2).flatten(2);
}

}  // namespace

TEST_CASE(
    "attention in a window equals its formula, and the fused form the plain one, with dilation, global keys, padding "
    "and dropout",
    "[kernels][window]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  struct Steps {
    int64_t dilation, heads;
  };
  for (const int64_t length : {1, 9, 64, 150})
    for (const int64_t window : {0, 2, 7, 40})
      for (const auto steps : {Steps{1, 0}, Steps{3, 0}, Steps{2, 1}, Steps{70, 0}})
        for (const int globals : {0, 1, 3})
          for (const double p : {0.0, 0.2}) {
            if (steps.dilation > 1 && type != at::kFloat) continue;
            const int64_t heads = 2, width = 24;
            INFO(isa << " T " << length << " w " << window << " dilation " << steps.dilation << " of " << steps.heads
                     << " globals " << globals << " p " << p);
            const auto qkv = numbers({2, length, 3 * width}, 0.1, 2);
            const auto bias = param({3 * width}, 0.5);
            AttentionContext context{.key_mask = at::ones({2, length}, at::kBool),
                                     .window = window,
                                     .dilation = steps.dilation,
                                     .dilated_heads = steps.heads};
            if (length > 5) context.key_mask[1].narrow(0, length - 4, 4).fill_(false);
            auto global = at::zeros({2, length}, at::kBool);
            for (int64_t g = 0; g < globals; ++g) global[0][g * 5 % length] = true;
            if (globals > 0) global[1][length / 2] = true;
            if (globals > 0) context.global_mask = global;
            const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
            compare([&](auto& in) { return fused::self_attention(in[0], bias, heads, context, drop); },
                    [&](auto& in) { return plain::self_attention(in[0], bias, heads, context, drop); }, {qkv}, {bias},
                    type);
            if (p > 0 || type != at::kFloat) continue;
            at::NoGradGuard no_grad;
            const auto slow = slow_window(qkv + bias.value(), heads, context.key_mask, global, context);
            CHECK((plain::self_attention(qkv, bias, heads, context, {}) - slow).abs().max().item<double>() < 1e-5);
          }
}

namespace {

RandomFeatures features(int64_t count, int64_t head_width, FeatureKernel kernel, double epsilon) {
  auto w = at::empty({count, head_width}, at::kFloat);
  draw_features(w, Rng(5).stream("test"));
  return {.projection = w, .kernel = kernel, .epsilon = epsilon};
}

/// Choromanski et al. 2021, equations 4 and 9, over every pair of a query and a key of one head; x [T, 3 C] with the
/// bias added.
Tensor slow_favor(const Tensor& x, const std::vector<bool>& real, bool causal, const RandomFeatures& f) {
  const int64_t length = x.size(0), width = x.size(1) / 3, count = f.projection.size(0);
  naive::Matrix q, k, v, w;
  for (int64_t t = 0; t < length; ++t) {
    q.emplace_back(), k.emplace_back(), v.emplace_back();
    for (int64_t c = 0; c < width; ++c)
      q[t].push_back(x[t][c].item<double>()), k[t].push_back(x[t][width + c].item<double>()),
          v[t].push_back(x[t][2 * width + c].item<double>());
  }
  for (int64_t r = 0; r < count; ++r) {
    w.emplace_back();
    for (int64_t c = 0; c < width; ++c) w[r].push_back(f.projection[r][c].item<double>());
  }
  const auto rows = naive::favor(q, k, v, w, real, causal, f.kernel == FeatureKernel::relu, f.epsilon);
  auto out = at::empty({length, width}, at::kDouble);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t c = 0; c < width; ++c) out[t][c] = rows[t][c];
  return out;
}

}  // namespace

TEST_CASE("random-feature attention equals its formula, and the fused form the plain one, causal or not, with padding",
          "[kernels][performer]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto kernel = GENERATE(FeatureKernel::softmax, FeatureKernel::relu);
  if (kernel == FeatureKernel::relu && type == at::kBFloat16)
    return;  // at its corner, rounding to bf16 moves a slope from 0 to 1
  const double epsilon = kernel == FeatureKernel::softmax ? GENERATE(1e-6, 1e-2) : 1e-3;
  for (const int64_t length : {1, 7, 48, 49, 131})
    for (const auto& [heads, head_width, count] :
         {std::tuple<int64_t, int64_t, int64_t>{2, 7, 5}, {1, 16, 40}, {3, 24, 64}})
      for (const bool causal : {false, true})
        for (const bool masked : {false, true}) {
          INFO(isa << " " << kernel << " T " << length << " C " << head_width << " R " << count << " causal " << causal
                   << " masked " << masked << " eps " << epsilon << " " << c10::toString(type));
          const int64_t width = heads * head_width;
          const auto qkv = numbers({2, length, 3 * width}, 0.1, 2);
          const auto bias = param({3 * width}, 0.5);
          const auto f = features(count, head_width, kernel, epsilon);
          AttentionContext context{.causal = causal};
          if (masked) {
            context.key_mask = at::ones({2, length}, at::kBool);
            context.key_mask[0]
                .narrow(0, length / 2, length - length / 2)
                .fill_(false);                    // length 1: all keys of the query are masked
            context.key_mask[1][0].fill_(false);  // and a masked first token
          }
          compare([&](auto& in) { return fused::favor_attention(in[0], bias, heads, context, f); },
                  [&](auto& in) { return plain::favor_attention(in[0], bias, heads, context, f); }, {qkv}, {bias},
                  type);
          if (type != at::kFloat || isa != base_isa || length > 49) continue;
          at::NoGradGuard no_grad;
          const auto got = plain::favor_attention(qkv, bias, heads, context, f);
          const auto x = (qkv + bias.value()).view({2, length, 3, heads, head_width});
          for (int64_t b = 0; b < 2; ++b)
            for (int64_t h = 0; h < heads; ++h) {
              std::vector<bool> real;
              for (int64_t t = 0; t < length; ++t) real.push_back(!masked || context.key_mask[b][t].item<bool>());
              const auto wanted = slow_favor(x[b].select(2, h).flatten(1), real, causal, f);
              CHECK(error_of(got[b].narrow(-1, h * head_width, head_width), wanted) < 2e-5);
            }
        }
}

TEST_CASE("a causal query of random-feature attention does not change when later keys grow without bound",
          "[kernels][performer]") {
  const auto f = features(32, 8, FeatureKernel::softmax, 1e-3);
  const auto bias = param({24}, 0.5);
  auto qkv = numbers({1, 100, 24}, 0.1, 2);
  const auto before = fused::favor_attention(qkv, bias, 1, {.causal = true}, f);
  qkv = qkv.clone();
  qkv.narrow(1, 60, 40).mul_(12);  // scores of e^100 and more
  const auto after = fused::favor_attention(qkv, bias, 1, {.causal = true}, f);
  CHECK(after.isfinite().all().item<bool>());
  CHECK(error_of(after.narrow(1, 0, 60), before.narrow(1, 0, 60)) < 1e-6);
}

TEST_CASE("random features approximate softmax attention, better with more features, for each exact kernel",
          "[kernels][performer]") {
  at::NoGradGuard no_grad;
  const auto qkv = numbers({1, 20, 24}, 0.1, 1.2);
  const auto bias = Param(at::zeros({24}), Init::zero);
  const auto exact = plain::self_attention(qkv, bias, 1, {}, {});
  for (const auto kernel : {FeatureKernel::softmax, FeatureKernel::trigonometric}) {
    const auto error = [&](int64_t count) {
      return error_of(plain::favor_attention(qkv, bias, 1, {}, features(count, 8, kernel, 1e-9)), exact);
    };
    INFO(kernel << " " << error(16) << " " << error(65536));
    CHECK(error(65536) < 0.01);
    CHECK(error(16) > error(65536));
    const auto causal = plain::favor_attention(qkv, bias, 1, {.causal = true}, features(65536, 8, kernel, 1e-9));
    CHECK(error_of(causal, plain::self_attention(qkv, bias, 1, {.causal = true}, {})) < 0.02);
  }
}

TEST_CASE("rows of random features are orthogonal in blocks and have the norms of rows of normal numbers",
          "[kernels][performer]") {
  const int64_t width = 16;
  auto w = at::empty({50 * width + 5, width}, at::kFloat);
  draw_features(w, Rng(5).stream("test"));
  for (int64_t block = 0; block < 50; ++block) {
    const auto rows = w.narrow(0, block * width, width).to(at::kDouble), gram = at::matmul(rows, rows.t());
    CHECK((gram - gram.diagonal().diag()).abs().max().item<double>() < 1e-4);
  }
  const auto lengths = w.square().sum(1);
  CHECK(lengths.mean().item<double>() == Approx(width).epsilon(0.05));  // chi square of `width` degrees
  CHECK(lengths.var().item<double>() == Approx(2.0 * width).epsilon(0.25));
  CHECK(std::abs(w.mean().item<double>()) < 4.5 / std::sqrt(static_cast<double>(w.numel())));
}

TEST_CASE(
    "cross attention equals its plain form, with distance biases, a scale, and queries aligned with the last keys",
    "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  struct Lengths {
    int64_t queries, keys;
  };
  for (const auto [queries, keys] : {Lengths{1, 1}, Lengths{5, 70}, Lengths{70, 5}, Lengths{70, 64}, Lengths{60, 131}})
    for (const bool causal : {false, true})
      for (const int facts : {0, 1, 2})
        for (const double p : {0.0, 0.2}) {
          if (causal && queries > keys) continue;
          const int64_t heads = 2,
                        width = heads *
                                (facts == 1 ? 32
                                            : 12);  // T5's heads need no copy in bf16: no bias, no scale, whole vectors
          INFO(isa << " T " << queries << " S " << keys << " causal " << causal << " facts " << facts << " p " << p);
          const auto q = numbers({2, queries, width}, 0.1), kv = numbers({2, keys, 2 * width}, 0.4),
                     distance = numbers({heads, queries + keys - 1}, 0.9, 1);
          const auto q_bias = facts == 1 ? Param() : param({width}, 0.5),
                     kv_bias = facts == 1 ? Param() : param({2 * width}, 0.7);
          AttentionContext context{.causal = causal, .scale = facts == 1 ? 1.0 : 0.0};
          if (facts == 2) context.key_mask = numbers({2, keys}, 0.2).gt(-0.3);
          const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
          const auto form = [&](bool fast, const std::vector<Tensor>& in) {
            auto own_facts = context;
            if (facts == 2) own_facts.distance_bias = in[2].to(at::kFloat);
            return fast ? fused::cross_attention(in[0], q_bias, in[1], kv_bias, heads, own_facts, drop)
                        : plain::cross_attention(in[0], q_bias, in[1], kv_bias, heads, own_facts, drop);
          };
          std::vector<Tensor> inputs{q, kv};
          if (facts == 2) inputs.push_back(distance);
          compare([&](auto& in) { return form(true, in); }, [&](auto& in) { return form(false, in); }, inputs,
                  facts == 1 ? std::vector<Param>{} : std::vector<Param>{q_bias, kv_bias}, type);
        }
}

TEST_CASE(
    "plain attention without gradients equals that of a training, and in a training has the bits of a recorded one",
    "[kernels][attention]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t heads = 2, width = 24, length = 11;
  const auto qkv = numbers({3, length, 3 * width}, 0.1).to(type);
  auto real = numbers({3, length}, 0.2).gt(-0.3);
  real[1].fill_(false);
  const auto distance = numbers({heads, 2 * length - 1}, 0.9, 1);
  struct Kind {
    const char* name;
    AttentionContext context;
  };
  for (const auto& [name, context] :
       {Kind{"scale", {.key_mask = real, .scale = 1.0}},
        Kind{"causal, with distance biases", {.causal = true, .distance_bias = distance}},
        Kind{"distance biases and a mask", {.key_mask = real, .distance_bias = distance}},
        Kind{"window", {.key_mask = real, .window = 3}}, Kind{"window of one key", {.key_mask = real, .window = 0}},
        Kind{"window wider than the text", {.key_mask = real, .window = 20}},
        Kind{"dilated window", {.key_mask = real, .window = 2, .dilation = 2}}}) {
    INFO(name << ", " << toString(type));
    const auto attend = [&](const Tensor& x, bool trains) {
      return plain::self_attention(x, Param(), heads, context, {.active = trains});
    };
    const auto recorded = attend(qkv.detach().requires_grad_(true), true).detach();
    at::NoGradGuard none;
    CHECK(at::equal(attend(qkv, true), recorded));  // as gradient checkpointing runs it twice
    const auto answer = attend(qkv, false);
    CHECK((answer - recorded).abs().max().item<double>() < (type == at::kFloat ? 1e-5 : 3e-2));
    if (context.key_mask.defined()) CHECK(answer[1].abs().max().item<double>() == 0);
  }
}

TEST_CASE("a distance bias is added to the score of each pair at that distance", "[kernels][attention]") {
  const int64_t queries = 3, keys = 5;
  const auto q = numbers({1, queries, 4}, 0.1).to(at::kDouble), kv = numbers({1, keys, 8}, 0.4).to(at::kDouble),
             distance = numbers({1, queries + keys - 1}, 0.9).to(at::kDouble);
  const auto got =
      plain::cross_attention(q, Param(), kv, Param(), 1, {.causal = true, .distance_bias = distance, .scale = 1}, {});
  for (int64_t t = 0; t < queries; ++t) {
    double total = 0;
    std::vector<double> mixed(4);
    for (int64_t s = 0; s <= t + keys - queries; ++s) {
      const double e = std::exp(at::dot(q[0][t], kv[0][s].slice(0, 0, 4)).item<double>() +
                                distance[0][s - t + queries - 1].item<double>());
      total += e;
      for (int64_t c = 0; c < 4; ++c) mixed[c] += e * kv[0][s][4 + c].item<double>();
    }
    for (int64_t c = 0; c < 4; ++c) CHECK(got[0][t][c].item<double>() == Approx(mixed[c] / total));
  }
}

TEST_CASE("every query of a row attends to its prefix, and causally to the keys after it", "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const int64_t length : {5, 131})
    for (const int64_t past : {0, 7}) {  // keys before the first query
      INFO(isa << " T " << length << " past " << past);
      const int64_t heads = 2, width = 2 * 16;
      const AttentionContext context{.key_mask = numbers({3, length + past}, 0.4).gt(-0.5),
                                     .causal = true,
                                     .prefix = at::tensor({int64_t{0}, length / 2, length}, at::kLong)};
      const Dropout drop{.p = 0.2, .key = 8, .site = 2, .active = true};
      compare([&](auto& in) { return fused::cross_attention(in[0], Param(), in[1], Param(), heads, context, drop); },
              [&](auto& in) { return plain::cross_attention(in[0], Param(), in[1], Param(), heads, context, drop); },
              {numbers({3, length, width}, 0.1, 2), numbers({3, length + past, 2 * width}, 0.3, 2)}, {}, type);
    }
  // The formula: a query attends to keys up to its own position and to those of the prefix.
  const auto x = numbers({1, 6, 3 * 10}, 0.1, 2).to(at::kDouble);
  const auto got = plain::self_attention(x, Param(), 1, {.causal = true, .prefix = at::tensor({3}, at::kLong)}, {});
  naive::Matrix part[3];
  std::vector<std::vector<bool>> visible(6, std::vector<bool>(6));
  for (int64_t t = 0; t < 6; ++t) {
    for (int64_t k = 0; k < 3; ++k)
      part[k].emplace_back(x[0][t].data_ptr<double>() + 10 * k, x[0][t].data_ptr<double>() + 10 * (k + 1));
    for (int64_t s = 0; s < 6; ++s) visible[t][s] = s <= t || s < 3;
  }
  const auto wanted = naive::attention(part[0], part[1], part[2], visible, naive::Matrix(6, naive::Row(6, 1.0)));
  for (int64_t t = 0; t < 6; ++t)
    for (int64_t c = 0; c < 10; ++c) CHECK(got[0][t][c].item<double>() == Approx(wanted[t][c]).margin(1e-9));
}

TEST_CASE(
    "attention with position and segment scores equals its plain form, for both streams of XLNet, with permutations, "
    "mems and dropout",
    "[kernels][relative]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const int64_t head_width : {7, 16, 32, 40})
    for (const int64_t length : {1, 6, 50, 131})
      for (const int64_t past : {0, 9})
        for (const bool predicts : {false, true})  // the query stream: few queries at positions of their own
          for (const bool plain_text : {false, true}) {
            const int64_t heads = 2, width = heads * head_width, keys = length + past,
                          queries = predicts ? (length + 2) / 3 : length;
            const int64_t rows = plain_text && length == 6 ? 37 : 2;  // enough that several share a sum of gradients
            INFO(isa << " C " << head_width << " T " << length << " past " << past << " predicts " << predicts
                     << " plain text " << plain_text);
            const auto small = [&](double phase) { return param({heads, head_width}, phase); };
            RelativeTerms terms{.r_w = small(0.2),
                                .r_r = small(0.9),
                                .r_s = small(1.3),
                                .segments = param({2, heads, head_width}, 2.1)};
            if (predicts)
              terms.distance_offset =
                  length - at::arange(rows * queries, at::kLong).mul(5).remainder(length).view({rows, queries});
            if (!plain_text) {
              terms.distance_list = at::tensor({int64_t{1}, int64_t{predicts ? 0 : 1}}, at::kLong);
              terms.segments_differ = numbers({2, queries, keys}, 0.8).gt(0.1);
              terms.visible = numbers({2, queries, keys}, 1.9).le(0.2);
              terms.visible[1][0].fill_(false);  // attends to nothing
            }
            const Dropout drop{.p = plain_text ? 0.0 : 0.2, .key = 8, .site = 2, .active = true};
            const int threads = at::get_num_threads();
            if (rows > 2) at::set_num_threads(3);  // which start in the middle of a head
            std::vector<Param> params{terms.r_w, terms.r_r};
            if (!plain_text) params.insert(params.end(), {terms.r_s, terms.segments});
            compare([&](auto& in) { return fused::relative_attention(in[0], in[1], in[2], heads, terms, drop); },
                    [&](auto& in) { return plain::relative_attention(in[0], in[1], in[2], heads, terms, drop); },
                    {numbers({rows, queries, width}, 0.1), numbers({rows, keys, 2 * width}, 0.3),
                     numbers({plain_text ? 1 : 2, keys + length, width}, 0.6)},
                    params, type);
            at::set_num_threads(threads);
          }
}
