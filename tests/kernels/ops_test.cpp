#include <ATen/Parallel.h>

#include "core/kernels/kernels.h"
#include "core/tensor/fused.h"
#include "core/tensor/plain.h"
#include "core/tensor/recompute.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/naive.h"

using namespace cloze;

namespace {

/// Numbers that look random and are the same everywhere.
Tensor numbers(at::IntArrayRef sizes, double phase, double size = 1) {
  int64_t n = 1;
  for (const auto s : sizes) n *= s;
  return (at::sin(at::arange(n, at::kDouble) * 1.7 + phase) * at::cos(at::arange(n, at::kDouble) * 0.61 + 2 * phase) * size).to(at::kFloat).view(sizes);
}

Param param(at::IntArrayRef sizes, double phase, double size = 1, double shift = 0) {
  return Param((numbers(sizes, phase, size) + shift).set_requires_grad(true), Init::weight);
}

/// Value and gradients of f, whose parameters are `params` and whose inputs are `inputs`.
struct Outcome {
  Tensor value;
  std::vector<Tensor> gradients;
};
template <class F>
Outcome outcome(const F& f, std::vector<Tensor> inputs, const std::vector<Param>& params, at::ScalarType type) {
  for (auto& input : inputs) input = input.to(type).detach().set_requires_grad(true);
  for (const auto& p : params) {
    p.value().mutable_grad() = Tensor();
    Param handle = p;
    handle.set_shadow(type == at::kBFloat16 ? p.value().detach().to(type) : Tensor());
  }
  Outcome found;
  found.value = f(inputs);
  const auto probe = found.value.dim() == 0 ? at::ones({}) : numbers(found.value.sizes(), 0.3);
  (found.value.to(at::kFloat) * probe).sum().backward();
  found.value = found.value.detach().to(at::kFloat);
  for (const auto& input : inputs) found.gradients.push_back(input.grad().to(at::kFloat));
  for (const auto& p : params) found.gradients.push_back(p.value().grad().to(at::kFloat).clone());
  return found;
}

/// The fused form against the plain one in fp32, values and gradients; bf16 keeps three digits.
template <class F, class P>
void compare(const F& fused_form, const P& plain_form, const std::vector<Tensor>& inputs, const std::vector<Param>& params, at::ScalarType type) {
  const double tolerance = type == at::kFloat ? 3e-5 : 4e-2;
  const auto a = outcome(fused_form, inputs, params, type), b = outcome(plain_form, inputs, params, at::kFloat);
  CHECK(error_of(a.value, b.value) < tolerance);
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    INFO("gradient " << i);
    CHECK(error_of(a.gradients[i], b.gradients[i]) < tolerance);
  }
}

const std::vector<std::string> isas{"portable", "avx2", "avx512"};

}  // namespace

TEST_CASE("every fused operator equals its plain form, values and gradients, for every instruction set", "[kernels]") {
  const auto width = GENERATE(int64_t{7}, int64_t{30}, int64_t{64}, int64_t{129});
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto isa = GENERATE_REF(from_range(isas));
  if (!kernels::set_isa(isa)) return;   // this processor lacks it
  INFO(isa << ", width " << width << ", " << c10::toString(type));
  const int64_t rows = 70, out = 19;
  const auto x = numbers({2, rows / 2, width}, 0.1), residual = numbers({2, rows / 2, out}, 0.2);
  const auto w = param({out, width}, 0.4, 0.3), b = param({out}, 0.5), gamma = param({out}, 0.6, 0.3, 1), beta = param({out}, 0.7);
  const auto drop = GENERATE(Dropout{}, Dropout{.p = 0.2, .key = 99, .site = 4, .active = true});

  compare([&](auto& in) { return fused::linear(in[0], w, b); }, [&](auto& in) { return plain::linear(in[0], w, b); }, {x}, {w, b}, type);
  for (const std::string name : {"gelu", "gelu_new", "relu", "silu", "mish"})
    if (name != "relu" || type == at::kFloat)   // at its corner, rounding to bf16 moves a slope from 0 to 1
      compare([&](auto& in) { return fused::linear_activation(in[0], w, b, name); }, [&](auto& in) { return plain::linear_activation(in[0], w, b, name); }, {x}, {w, b}, type);
  compare([&](auto& in) { return fused::linear_dropout_add_norm(in[0], w, b, drop, in[1], gamma, beta, 1e-12); },
          [&](auto& in) { return plain::linear_dropout_add_norm(in[0], w, b, drop, in[1], gamma, beta, 1e-12); }, {x, residual}, {w, b, gamma, beta}, type);
  compare([&](auto& in) { return fused::layer_norm(in[0], gamma, beta, 1e-5); }, [&](auto& in) { return plain::layer_norm(in[0], gamma, beta, 1e-5); }, {residual}, {gamma, beta}, type);
  if (drop.on()) compare([&](auto& in) { return fused::dropout(in[0], drop); }, [&](auto& in) { return plain::dropout(in[0], drop); }, {x}, {}, type);
  const auto index = at::tensor({3, 0, 69, 12}, at::kLong);
  compare([&](auto& in) { return fused::take_rows(in[0].flatten(0, 1), index); }, [&](auto& in) { return plain::take_rows(in[0].flatten(0, 1), index); }, {x}, {}, type);
  const auto table = param({37, width}, 0.8, 0.3), bias = param({37}, 0.9);
  const auto labels = at::arange(rows, at::kLong).remainder(37);
  compare([&](auto& in) { return fused::token_cross_entropy(in[0].flatten(0, 1), table, bias, labels, nullptr); },
          [&](auto& in) { return plain::token_cross_entropy(in[0].flatten(0, 1), table, bias, labels, nullptr); }, {x}, {table, bias}, type);
  kernels::set_isa("avx512") || kernels::set_isa("avx2");
}

TEST_CASE("fused embedding equals its plain form, frozen row and absent segments included", "[kernels]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t width = 29;
  auto word = param({11, width}, 0.1);
  word.set_frozen_row(2);
  const auto position = param({9, width}, 0.2), segment = param({3, width}, 0.3), gamma = param({width}, 0.6, 0.3, 1), beta = param({width}, 0.7);
  const auto ids = at::arange(24, at::kLong).mul(5).remainder(11).view({3, 8});
  const auto types = GENERATE(0, 1) ? ids.remainder(3) : Tensor();
  const Dropout drop{.p = 0.3, .key = 5, .site = 0, .active = true};
  const EmbeddingTables tables{.word = word, .position = position, .type = segment, .gamma = gamma, .beta = beta, .eps = 1e-12};
  compare([&](auto&) { return fused::embed({ids, types}, tables, drop); }, [&](auto&) { return plain::embed({ids, types}, tables, drop); }, {}, {word, position, segment, gamma, beta}, type);
}

TEST_CASE("tokens are drawn as often as the softmax says, and the vector form draws the same ones", "[kernels]") {
  const auto isa = GENERATE_REF(from_range(isas));
  if (!kernels::set_isa(isa)) return;
  const int64_t rows = 20000, vocab = 301;
  const auto table = param({vocab, 6}, 0.4), bias = param({vocab}, 0.9);
  const auto hidden = numbers({1, 6}, 0.3).detach().expand({rows, 6}).contiguous();
  at::NoGradGuard no_grad;
  const auto drawn = draw_tokens(hidden, table, bias, 0.7, 11);
  set_fused(false);
  const auto plain_drawn = draw_tokens(hidden, table, bias, 0.7, 11);
  set_fused(true);
  CHECK(drawn.ne(plain_drawn).sum().item<int64_t>() <= 3);   // a number may fall on the edge between two tokens
  const auto expected = at::softmax(at::linear(hidden.narrow(0, 0, 1), table.value(), bias.value()) / 0.7, -1)[0] * rows;
  const auto counts = at::bincount(drawn, {}, vocab);
  const double chi_square = ((counts - expected).square() / expected).sum().item<double>();
  CHECK(chi_square < 300 + 5 * std::sqrt(2 * 300.0));
  CHECK(chi_square > 300 - 5 * std::sqrt(2 * 300.0));
  kernels::set_isa("avx512") || kernels::set_isa("avx2");
}

TEST_CASE("fused embedding takes positions of its own, and does without segments", "[kernels]") {
  const int64_t width = 21;
  const auto word = param({11, width}, 0.1), gamma = param({width}, 0.6, 0.3, 1), beta = param({width}, 0.7);
  auto position = param({9, width}, 0.2);
  position.set_frozen_row(1);
  const auto ids = at::arange(24, at::kLong).mul(5).remainder(11).view({3, 8}), positions = ids.remainder(8) + 1;
  const EmbeddingTables tables{.word = word, .position = position, .gamma = gamma, .beta = beta};
  const EmbeddingIds in{.ids = ids, .positions = positions};
  compare([&](auto&) { return fused::embed(in, tables, {}); }, [&](auto&) { return plain::embed(in, tables, {}); }, {}, {word, position, gamma, beta}, at::kFloat);
}

TEST_CASE("fused attention equals its plain form for any width and length, with masks, causal, with dropout", "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(isas));
  if (!kernels::set_isa(isa)) return;
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const int64_t head_width : {7, 16, 40})
    for (const int64_t length : {1, 5, 50, 131})
      for (const bool causal : {false, true})
        for (const bool masked : {false, true})
          for (const double p : {0.0, 0.2}) {
            const int64_t heads = 2, width = heads * head_width;
            INFO(isa << " C " << head_width << " T " << length << " causal " << causal << " masked " << masked << " p " << p);
            const auto qkv = numbers({2, length, 3 * width}, 0.1, 2);
            const auto bias = param({3 * width}, 0.5);
            AttentionContext context{.causal = causal};
            if (masked) {
              context.key_mask = at::ones({2, length}, at::kBool);
              context.key_mask[0].narrow(0, length / 2, length - length / 2).fill_(false);   // length 1: the query sees nothing
            }
            const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
            compare([&](auto& in) { return fused::self_attention(in[0], bias, heads, context, drop); },
                    [&](auto& in) { return plain::self_attention(in[0], bias, heads, context, drop); }, {qkv}, {bias}, type);
          }
  kernels::set_isa("avx512") || kernels::set_isa("avx2");
}

TEST_CASE("plain attention is the paper's equation, written as loops", "[kernels][attention]") {
  const int64_t length = 6, heads = 2, head_width = 5, width = heads * head_width;
  const auto qkv = numbers({1, length, 3 * width}, 0.1, 2).to(at::kDouble);
  const auto mask = at::tensor({1, 1, 0, 1, 1, 0}, at::kInt).to(at::kBool).view({1, 6});
  const Dropout drop{.p = 0.25, .key = 3, .site = 1, .active = true};
  const auto factors = plain::dropout_mask({1, heads, length, length}, drop);
  const auto got = plain::self_attention(qkv, Param(), heads, {.key_mask = mask, .causal = true}, drop);
  for (int64_t h = 0; h < heads; ++h) {
    naive::Matrix part[3], f(length, naive::Row(length));
    std::vector<std::vector<bool>> visible(length, std::vector<bool>(length));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t k = 0; k < 3; ++k) {
        part[k].emplace_back();
        for (int64_t c = 0; c < head_width; ++c) part[k][t].push_back(qkv[0][t][k * width + h * head_width + c].item<double>());
      }
      for (int64_t s = 0; s < length; ++s) visible[t][s] = s <= t && mask[0][s].item<bool>(), f[t][s] = factors[0][h][t][s].item<double>();
    }
    const auto wanted = naive::attention(part[0], part[1], part[2], visible, f);
    for (int64_t t = 0; t < length; ++t)
      for (int64_t c = 0; c < head_width; ++c) CHECK(got[0][t][h * head_width + c].item<double>() == Approx(wanted[t][c]).margin(1e-7));
  }
}

TEST_CASE("norm, activations and cross entropy are the papers' formulas", "[kernels]") {
  const auto x = numbers({1, 13}, 0.4, 3);
  const auto gamma = param({13}, 0.6, 0.3, 1), beta = param({13}, 0.7);
  naive::Row row, g, b;
  for (int64_t i = 0; i < 13; ++i) row.push_back(x[0][i].item<double>()), g.push_back(gamma.value()[i].item<double>()), b.push_back(beta.value()[i].item<double>());
  const auto wanted = naive::layer_norm(row, g, b, 1e-5);
  const auto got = fused::layer_norm(x, gamma, beta, 1e-5);
  for (int64_t i = 0; i < 13; ++i) CHECK(got[0][i].item<double>() == Approx(wanted[i]).margin(2e-6));
  auto u = at::linspace(-9, 9, 999), out = at::empty_like(u);
  for (const auto& [act, formula] : {std::pair{kernels::Activation::gelu, &naive::gelu}, std::pair{kernels::Activation::gelu_tanh, &naive::gelu_tanh}}) {
    kernels::table().f32.activation_forward(act, 1, 999, u.data_ptr<float>(), nullptr, out.data_ptr<float>());
    double worst = 0;
    for (int64_t i = 0; i < 999; ++i) worst = std::max(worst, std::abs(out[i].item<double>() - formula(u[i].item<double>())));
    CHECK(worst < 2e-6);
  }
  const auto table = Param(at::eye(13).set_requires_grad(true), Init::weight), bias = Param(at::zeros({13}).set_requires_grad(true), Init::zero);
  int64_t correct = -1;
  CHECK(fused::token_cross_entropy(x, table, bias, at::tensor({4}, at::kLong), &correct).item<double>() == Approx(naive::cross_entropy(row, 4)).epsilon(1e-6));
  CHECK(correct == (x.argmax().item<int64_t>() == 4));
}

TEST_CASE("the update is the paper's, with and without bias correction, and clears gradients", "[kernels][optimizer]") {
  for (const bool correct : {true, false}) {
    naive::AdamW wanted{.p = 0.7};
    std::vector<float> p(37, 0.7F), g(37), m(37), v(37);
    std::vector<uint16_t> shadow(37);
    for (int t = 1; t <= 3; ++t) {
      const double gradient = 0.3 * t - 0.5;
      std::fill(g.begin(), g.end(), static_cast<float>(gradient));
      wanted.step(gradient * 0.5, t, 0.01, 0.9, 0.99, 1e-6, 0.1, correct);
      const kernels::AdamW update{.learning_rate = 0.01F, .beta1 = 0.9F, .beta2 = 0.99F, .epsilon = 1e-6F, .decay = 0.001F,
                                  .correction1 = correct ? static_cast<float>(1 - std::pow(0.9, t)) : 1, .correction2 = correct ? static_cast<float>(1 - std::pow(0.99, t)) : 1, .grad_scale = 0.5F};
      kernels::table().adamw(update, 37, p.data(), g.data(), m.data(), v.data(), shadow.data());
      CHECK(p[0] == Approx(wanted.p).epsilon(1e-6));
      CHECK(p[36] == p[0]);
      CHECK(g[36] == 0);
      CHECK(std::abs(at::tensor({p[0]}).to(at::kBFloat16).item<float>() - at::from_blob(shadow.data(), {1}, at::kBFloat16).item<float>()) == 0);
    }
  }
}

TEST_CASE("dropout keeps its share, and its mask does not depend on the number of threads", "[kernels][dropout]") {
  const Dropout drop{.p = 0.1, .key = 1234, .site = 7, .active = true};
  const auto mask = plain::dropout_mask({1000, 300}, drop);
  const double kept = mask.gt(0).sum().item<double>() / 300000;
  CHECK(std::abs(kept - (1 - std::nearbyint(0.1 * 65536) / 65536)) < 4.5 * std::sqrt(0.09 / 300000));
  CHECK(mask.mean().item<double>() == Approx(1).epsilon(0.005));
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    CHECK(at::equal(fused::dropout(at::ones({1000, 300}), drop), mask));
  }
  // Neighbours are independent: both dropped as often as chance has it.
  const auto off = mask.eq(0);
  const double both = off.narrow(1, 0, 299).logical_and(off.narrow(1, 1, 299)).sum().item<double>() / 299000;
  CHECK(std::abs(both - 0.01) < 4.5 * std::sqrt(0.01 / 299000));
}

TEST_CASE("results are the same bits for any number of threads", "[kernels]") {
  const auto bias = param({96}, 0.5);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    return outcome([&](auto& in) { return fused::self_attention(in[0], bias, 4, {}, {.p = 0.1, .key = 4, .site = 1, .active = true}); }, {numbers({5, 40, 96}, 0.2)}, {bias}, at::kFloat);
  };
  const auto one = run(1), three = run(3);
  CHECK(at::equal(one.value, three.value));
  for (size_t i = 0; i < one.gradients.size(); ++i) CHECK(at::equal(one.gradients[i], three.gradients[i]));
}

namespace {

/// Attention in a window by the formula, over a full table of who sees whom. x [B, T, 3 D] with the bias added.
Tensor slow_window(const Tensor& x, int64_t heads, const Tensor& real, const Tensor& global, int64_t window) {
  const int64_t length = x.size(1), width = x.size(2) / 3 / heads;
  const auto parts = x.to(at::kDouble).view({x.size(0), length, 3, heads, width}).permute({2, 0, 3, 1, 4});
  const auto place = at::arange(length, at::kLong);
  auto seen = (place.unsqueeze(1) - place.unsqueeze(0)).abs().le(window).unsqueeze(0).logical_or(global.unsqueeze(1)).logical_and(real.unsqueeze(1)).unsqueeze(1);   // [B, 1, T, T]
  const auto scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(width));
  const auto p = at::softmax(scores.masked_fill(seen.logical_not(), -1e30), -1).masked_fill(seen.logical_not(), 0);
  return at::matmul(p, parts[2]).transpose(1, 2).flatten(2);
}

}  // namespace

TEST_CASE("attention in a window equals its formula, and the fused form the plain one, with global keys, padding and dropout", "[kernels][window]") {
  const auto isa = GENERATE_REF(from_range(isas));
  if (!kernels::set_isa(isa)) return;
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const int64_t length : {1, 9, 64, 150})
    for (const int64_t window : {0, 2, 7, 40})
      for (const int globals : {0, 1, 3})
        for (const double p : {0.0, 0.2}) {
          const int64_t heads = 2, width = 24;
          INFO(isa << " T " << length << " w " << window << " globals " << globals << " p " << p);
          const auto qkv = numbers({2, length, 3 * width}, 0.1, 2);
          const auto bias = param({3 * width}, 0.5);
          AttentionContext context{.key_mask = at::ones({2, length}, at::kBool), .window = window};
          if (length > 5) context.key_mask[1].narrow(0, length - 4, 4).fill_(false);
          auto global = at::zeros({2, length}, at::kBool);
          for (int64_t g = 0; g < globals; ++g) global[0][g * 5 % length] = true;
          if (globals > 0) global[1][length / 2] = true;
          if (globals > 0) context.global_mask = global;
          const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
          compare([&](auto& in) { return fused::self_attention(in[0], bias, heads, context, drop); }, [&](auto& in) { return plain::self_attention(in[0], bias, heads, context, drop); }, {qkv}, {bias}, type);
          if (p > 0 || type != at::kFloat) continue;
          at::NoGradGuard no_grad;
          const auto slow = slow_window(qkv + bias.value(), heads, context.key_mask, global, window);
          CHECK((plain::self_attention(qkv, bias, heads, context, {}) - slow).abs().max().item<double>() < 1e-5);
        }
  kernels::set_isa("avx512") || kernels::set_isa("avx2");
}
