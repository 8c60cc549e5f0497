#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>

#include "core/kernels/kernels.h"
#include "core/tensor/fused.h"
#include "core/tensor/matmul.h"
#include "core/tensor/plain.h"
#include "core/tensor/recompute.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"
#include "tests/support/naive.h"

using namespace cloze;

TEST_CASE("every fused operator equals its plain form, values and gradients, for every instruction set", "[kernels]") {
  const auto width = GENERATE(int64_t{7}, int64_t{30}, int64_t{64}, int64_t{129});
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  INFO(isa << ", width " << width << ", " << c10::toString(type));
  const int64_t rows = 70, out = 19;
  const auto x = numbers({2, rows / 2, width}, 0.1), residual = numbers({2, rows / 2, out}, 0.2);
  const auto w = param({out, width}, 0.4, 0.3), b = param({out}, 0.5), gamma = param({out}, 0.6, 0.3, 1),
             beta = param({out}, 0.7);
  const auto drop = GENERATE(Dropout{}, Dropout{.p = 0.2, .key = 99, .site = 4, .active = true});

  compare([&](auto& in) { return fused::linear(in[0], w, b); }, [&](auto& in) { return plain::linear(in[0], w, b); },
          {x}, {w, b}, type);
  for (const auto act : {Activation::gelu, Activation::gelu_new, Activation::relu, Activation::silu, Activation::mish})
    if (act != Activation::relu || type == at::kFloat)  // at its corner, rounding to bf16 moves a slope from 0 to 1
      compare([&](auto& in) { return fused::linear_activation(in[0], w, b, act, drop); },
              [&](auto& in) { return plain::linear_activation(in[0], w, b, act, drop); }, {x}, {w, b}, type);
  for (const bool centred : {true, false})
    for (const bool has_beta : {true, false}) {
      INFO("centred " << centred << " beta " << has_beta);
      const NormParams norm{
          .gamma = gamma, .beta = has_beta ? beta : Param(), .eps = has_beta ? 1e-12 : 1e-5, .centred = centred};
      auto params = has_beta ? std::vector<Param>{gamma, beta} : std::vector<Param>{gamma};
      compare([&](auto& in) { return fused::layer_norm(in[0], norm); },
              [&](auto& in) { return plain::layer_norm(in[0], norm); }, {residual}, params, type);
      params.insert(params.end(), {w, b});
      compare([&](auto& in) { return fused::linear_dropout_add_norm(in[0], w, b, drop, in[1], norm); },
              [&](auto& in) { return plain::linear_dropout_add_norm(in[0], w, b, drop, in[1], norm); }, {x, residual},
              params, type);
    }
  compare([&](auto& in) { return fused::linear_dropout_add(in[0], w, b, drop, in[1]); },
          [&](auto& in) { return plain::linear_dropout_add(in[0], w, b, drop, in[1]); }, {x, residual}, {w, b}, type);
  const auto second = param({11, out}, 0.8, 0.3), second_bias = param({11}, 0.9);
  const auto skip = numbers({2, rows / 2, 11}, 0.3);
  const NormParams plain_norm{.gamma = param({11}, 0.6, 0.3, 1)};
  for (const auto act : {Activation::gelu, Activation::silu, Activation::mish}) {  // the kernels have no mish
    const FirstLayer first{w, act == Activation::silu ? Param() : b, act, drop};
    auto params = std::vector<Param>{w, second, second_bias};
    if (first.b.defined()) params.push_back(b);
    compare([&](auto& in) { return fused::linear_dropout_add(in[0], second, second_bias, drop, in[1], &first); },
            [&](auto& in) { return plain::linear_dropout_add(in[0], second, second_bias, drop, in[1], &first); },
            {x, skip}, params, type);
    params.push_back(plain_norm.gamma);
    compare(
        [&](auto& in) {
          return fused::linear_dropout_add_norm(in[0], second, second_bias, {}, in[1], plain_norm, &first);
        },
        [&](auto& in) {
          return plain::linear_dropout_add_norm(in[0], second, second_bias, {}, in[1], plain_norm, &first);
        },
        {x, skip}, params, type);
  }
  if (drop.on())
    compare([&](auto& in) { return fused::dropout(in[0], drop); },
            [&](auto& in) { return plain::dropout(in[0], drop); }, {x}, {}, type);
  const auto both = [](const MemoryState& state) { return at::cat({state.output.to(at::kFloat), state.cell}, -1); };
  compare([&](auto& in) { return both(fused::memory_cell(in[0], in[1].to(at::kFloat))); },
          [&](auto& in) { return both(plain::memory_cell(in[0], in[1].to(at::kFloat))); },
          {numbers({rows, 4 * width}, 0.1, 4), numbers({rows, width}, 0.2, 3)}, {}, type);
  const auto index = at::tensor({3, 0, 69, 12}, at::kLong);
  compare([&](auto& in) { return fused::take_rows(in[0].flatten(0, 1), index); },
          [&](auto& in) { return plain::take_rows(in[0].flatten(0, 1), index); }, {x}, {}, type);
  for (const int64_t vocab : {37, 2 * 2048 + 5}) {  // of one block, and of three
    const auto table = param({vocab, width}, 0.8, 0.3), bias = param({vocab}, 0.9);
    auto labels = at::arange(rows, at::kLong).mul(vocab / 37 + 1).remainder(vocab);
    labels[0] = vocab - 1;
    const auto weights = at::arange(rows, at::kFloat).remainder(5) / 2;  // of every fifth row 0
    for (const LossOptions& options :
         {LossOptions{}, LossOptions{.label_smoothing = 0.1}, LossOptions{.label_smoothing = 0.2, .z_loss = 0.01},
          LossOptions{.weights = weights}, LossOptions{.label_smoothing = 0.2, .z_loss = 0.01, .weights = weights}})
      for (const auto& added : {bias, Param()}) {
        const auto params = added.defined() ? std::vector<Param>{table, added} : std::vector<Param>{table};
        Tensor correct, wanted;
        compare(
            [&](auto& in) {
              return fused::token_cross_entropy(in[0].flatten(0, 1), table, added, labels, options, &correct);
            },
            [&](auto& in) {
              return plain::token_cross_entropy(in[0].flatten(0, 1), table, added, labels, options, &wanted);
            },
            {x}, params, type);
        if (type == at::kFloat) CHECK(at::equal(correct, wanted));  // in bf16 two logits may round to one
      }
  }
  const Param none;  // linear layers without a bias
  compare([&](auto& in) { return fused::linear_activation(in[0], w, none, Activation::gelu); },
          [&](auto& in) { return plain::linear_activation(in[0], w, none, Activation::gelu); }, {x}, {w}, type);
  compare([&](auto& in) { return fused::linear_dropout_add(in[0], w, none, drop, in[1]); },
          [&](auto& in) { return plain::linear_dropout_add(in[0], w, none, drop, in[1]); }, {x, residual}, {w}, type);
  const NormParams rms{.gamma = gamma, .eps = 1e-6, .centred = false};
  compare([&](auto& in) { return fused::linear_dropout_add_norm(in[0], w, none, drop, in[1], rms); },
          [&](auto& in) { return plain::linear_dropout_add_norm(in[0], w, none, drop, in[1], rms); }, {x, residual},
          {w, gamma}, type);
}

namespace {

/// Bytes of tensors that were allocated on this thread and not freed.
struct LiveBytes : c10::MemoryReportingInfoBase {
  int64_t count = 0;
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override { count += bytes; }
  bool memoryProfilingEnabled() const override { return true; }
};

}  // namespace

TEST_CASE("of a feed-forward network the wide layer is kept once for the backward pass", "[kernels]") {
  const int64_t rows = 64, width = 16, wide = 1024, bytes = rows * wide * 4;
  const auto x = numbers({rows, width}, 0.1).requires_grad_(true);
  const auto w = param({wide, width}, 0.2), b = param({wide}, 0.3), second = param({width, wide}, 0.4),
             bias = param({width}, 0.5);
  const NormParams norm{.gamma = param({width}, 0.6, 0.3, 1)};
  const FirstLayer first{w, b, Activation::gelu, {}};
  const auto live = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
  const bool has_norm = GENERATE(false, true);
  const auto out = has_norm ? fused::linear_dropout_add_norm(x, second, bias, {}, x, norm, &first)
                            : fused::linear_dropout_add(x, second, bias, {}, x, &first);
  CHECK(live->count >= bytes);
  CHECK(live->count < bytes + bytes / 2);
}

namespace {

/// Cosines and sines of position times theta^(-2 i / C), fp32 [T, C].
Tensor angles(int64_t length, int64_t head_width, double theta) {
  auto table = at::empty({length, head_width}, at::kFloat);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t i = 0; i < head_width / 2; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
      table[t][i] = std::cos(angle);
      table[t][head_width / 2 + i] = std::sin(angle);
    }
  return table;
}

}  // namespace

TEST_CASE("fused rotary positions equal their plain form, values and gradients, for every instruction set",
          "[kernels][rotary]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  for (const int64_t head_width : {2, 10, 32, 64, 70})
    for (const int64_t length : {1, 5, 67})
      for (const bool has_bias : {false, true}) {
        INFO(isa << " C " << head_width << " T " << length << " bias " << has_bias);
        const int64_t heads = 3, width = 20;
        const auto x = numbers({2, length, width}, 0.1);
        const auto w = param({3 * heads * head_width, width}, 0.4, 0.3), b = param({3 * heads * head_width}, 0.5);
        const auto added = has_bias ? b : Param();
        const auto params = has_bias ? std::vector<Param>{w, b} : std::vector<Param>{w};
        const auto table = angles(length, head_width, 100);
        compare([&](auto& in) { return fused::linear_rotary(in[0], w, added, table); },
                [&](auto& in) { return plain::linear_rotary(in[0], w, added, table); }, {x}, params, type);
      }
}

TEST_CASE("plain rotary positions are the paper's rotations, written as loops", "[kernels][rotary]") {
  const int64_t length = 7, heads = 2, head_width = 6, width = 5, all = heads * head_width;
  const double theta = 50;
  const auto x = numbers({1, length, width}, 0.1);
  const auto w = param({3 * all, width}, 0.4), b = param({3 * all}, 0.5);
  const auto got = plain::linear_rotary(x, w, b, angles(length, head_width, theta));
  const auto before = at::linear(x, w.value(), b.value());
  for (int64_t t = 0; t < length; ++t)
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < head_width / 2; ++i) {
          const int64_t one = part * all + h * head_width + i, two = one + head_width / 2;
          const double u = before[0][t][one].item<double>(), v = before[0][t][two].item<double>();
          const double angle =
              part == 2 ? 0
                        : static_cast<double>(t) *
                              std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
          CHECK(got[0][t][one].item<double>() == Approx(u * std::cos(angle) - v * std::sin(angle)).margin(1e-5));
          CHECK(got[0][t][two].item<double>() == Approx(u * std::sin(angle) + v * std::cos(angle)).margin(1e-5));
        }
}

TEST_CASE("angles of another number of positions than a sequence has are refused", "[kernels][rotary]") {
  const auto w = param({12, 3}, 0.4);
  const auto x = numbers({2, 5, 3}, 0.3).set_requires_grad(true);
  CHECK_THROWS_WITH(linear_rotary(x, w, Param(), angles(4, 2, 10)),
                    "a sequence has 5 tokens, the angles are those of 4");
}

TEST_CASE("fused embedding equals its plain form, padding row and absent segments included", "[kernels]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t width = 29;
  auto word = param({11, width}, 0.1);
  word.set_padding_row(2);
  const auto position = param({9, width}, 0.2), segment = param({3, width}, 0.3), gamma = param({width}, 0.6, 0.3, 1),
             beta = param({width}, 0.7);
  const auto ids = at::arange(24, at::kLong).mul(5).remainder(11).view({3, 8});
  const auto types = GENERATE(0, 1) ? ids.remainder(3) : Tensor();
  const Dropout drop{.p = 0.3, .key = 5, .site = 0, .active = true};
  const EmbeddingTables tables{
      .word = word, .position = position, .type = segment, .norm = {.gamma = gamma, .beta = beta}};
  compare([&](auto&) { return fused::embed({ids, types}, tables, drop); },
          [&](auto&) { return plain::embed({ids, types}, tables, drop); }, {}, {word, position, segment, gamma, beta},
          type);
  const EmbeddingTables bare{.word = word, .position = position, .scale = 3.5};  // without a norm, like a decoder's
  compare([&](auto&) { return fused::embed({ids}, bare, drop); },
          [&](auto&) { return plain::embed({ids}, bare, drop); }, {}, {word, position}, type);
}

TEST_CASE("labels and rows outside the tables are rejected before the kernels read them", "[kernels]") {
  const auto table = param({5, 3}, 0.4);
  const auto x = numbers({1, 3}, 0.3).set_requires_grad(true);
  for (const int64_t label : {-100, 5})
    CHECK_THROWS_WITH(token_cross_entropy(x, table, Param(), at::tensor({label}, at::kLong), {}, nullptr),
                      Catch::Contains("a label lies outside the 5 tokens of the model"));
  const auto q = numbers({6, 2, 4}, 0.1), kv = numbers({2, 7, 8}, 0.2);
  CHECK_THROWS_WITH(cross_attention(q, {}, kv, {}, 2, {}, {}),
                    Catch::Contains("queries have 6 rows, keys 2 and their mask 2; these must be equal"));
  CHECK_THROWS_WITH(
      cross_attention(q, {}, numbers({6, 7, 8}, 0.2), {}, 2, {.key_mask = at::ones({2, 7}, at::kBool)}, {}),
      Catch::Contains("queries have 6 rows, keys 6 and their mask 2; these must be equal"));
}

TEST_CASE("without gradients an operator has the bits that it has with them, and no graph", "[kernels]") {
  const auto x = numbers({2, 5, 12}, 0.3).set_requires_grad(true), qkv = numbers({2, 5, 36}, 0.2);
  const auto w = param({20, 12}, 0.4), b = param({20}, 0.1);
  const auto all = [&] {
    return std::vector{linear_activation(x, w, b, Activation::gelu),
                       linear_dropout_add_norm(x, w, b, {}, numbers({2, 5, 20}, 0.6), {.gamma = b}),
                       self_attention(qkv, param({36}, 0.5), 2, {}, {})};
  };
  const auto with = all();
  const at::NoGradGuard no_grad;
  CHECK(use_fused(x));
  const auto without = all();
  for (size_t k = 0; k < with.size(); ++k) {
    CHECK(at::equal(without[k], with[k]));
    CHECK(with[k].grad_fn() != nullptr);
    CHECK(without[k].grad_fn() == nullptr);
  }
}

TEST_CASE("a plain scope runs the plain forms, and leaves them or the fused ones on as they were", "[kernels]") {
  const auto x = numbers({2, 3}, 0.3);
  const auto in_scope = [&] {
    const PlainScope plain;
    return use_fused(x);
  };
  CHECK_FALSE(in_scope());
  CHECK(use_fused(x));
  set_fused(false);
  CHECK_FALSE(in_scope());
  CHECK_FALSE(use_fused(x));
  set_fused(true);
}

TEST_CASE("an attention that is asked for its probabilities gives them, with gradients and without", "[kernels]") {
  const auto q = numbers({2, 5, 12}, 0.3), kv = numbers({2, 7, 24}, 0.2), qkv = numbers({2, 5, 36}, 0.2);
  for (const bool records : {false, true}) {
    const at::AutoGradMode graph(records);
    std::vector<Tensor> found;
    self_attention(qkv, {}, 2, {.probabilities = &found}, {});
    cross_attention(q, {}, kv, {}, 2, {.probabilities = &found}, {});
    REQUIRE(found.size() == 2);
    CHECK((found[0].sizes() == std::vector<int64_t>{2, 2, 5, 5}));
    CHECK((found[1].sizes() == std::vector<int64_t>{2, 2, 5, 7}));
    for (const auto& of_keys : found) CHECK(error_of(of_keys.sum(-1), at::ones({2, 2, 5})) < 1e-6);
  }
}

TEST_CASE("label smoothing and the z loss are their formulas", "[kernels]") {
  const int64_t vocab = 5;
  const auto table = param({vocab, 3}, 0.4);
  const auto x = numbers({1, 3}, 0.3).set_requires_grad(true);
  const auto logits = at::linear(x.detach(), table.value().detach()).to(at::kDouble)[0];
  const double lse = at::logsumexp(logits, {0}).item<double>();
  double wanted = 0.01 * lse * lse;
  for (int64_t v = 0; v < vocab; ++v) wanted -= ((v == 2 ? 0.8 : 0) + 0.2 / vocab) * (logits[v].item<double>() - lse);
  CHECK(fused::token_cross_entropy(x, table, Param(), at::tensor({2}, at::kLong),
                                   {.label_smoothing = 0.2, .z_loss = 0.01}, nullptr)
            .item<double>() == Approx(wanted).epsilon(1e-5));
}

TEST_CASE("each row of a cross entropy counts by its weight, in the sum and in its gradient", "[kernels]") {
  const int64_t rows = 4, vocab = 5, width = 3;
  const auto table = param({vocab, width}, 0.4), bias = param({vocab}, 0.9);
  const std::vector<int64_t> labels{2, 0, 4, 2};
  const std::vector<float> weights{0.5, 3, 0, 1.25};
  const auto *e = table.value().data_ptr<float>(), *b = bias.value().data_ptr<float>();
  for (const bool is_fused : {true, false}) {
    INFO(is_fused);
    const auto x = numbers({rows, width}, 0.3).set_requires_grad(true);
    const auto sum = (is_fused ? fused::token_cross_entropy : plain::token_cross_entropy)(
        x, table, bias, at::tensor(labels, at::kLong), {.weights = at::tensor(weights)}, nullptr, nullptr);
    sum.backward();
    double wanted = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const auto label = labels[static_cast<size_t>(r)];
      const double weight = weights[static_cast<size_t>(r)];
      std::vector<double> logits;
      double total = 0;
      for (int64_t v = 0; v < vocab; ++v) {
        double logit = b[v];
        for (int64_t d = 0; d < width; ++d) logit += double{x.data_ptr<float>()[r * width + d]} * e[v * width + d];
        logits.push_back(logit);
        total += std::exp(logit);
      }
      wanted += weight * (std::log(total) - logits[static_cast<size_t>(label)]);
      for (int64_t d = 0; d < width; ++d) {
        double slope = 0;
        for (int64_t v = 0; v < vocab; ++v)
          slope += weight * (std::exp(logits[static_cast<size_t>(v)]) / total - (v == label)) * e[v * width + d];
        CHECK(x.grad()[r][d].item<double>() == Approx(slope).epsilon(1e-4).margin(1e-6));
      }
    }
    CHECK(sum.item<double>() == Approx(wanted).epsilon(1e-5));
  }
}

TEST_CASE("tokens are sampled with the probabilities of the softmax, and the vector form samples the same ones",
          "[kernels]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const int64_t rows = 20000, vocab = GENERATE(301, 2048 + 301);  // of one block, and of two
  const auto table = param({vocab, 6}, 0.4), bias = param({vocab}, 0.9);
  const auto hidden = numbers({1, 6}, 0.3).detach().expand({rows, 6}).contiguous();
  const TokenDraw draw{.temperature = 0.7, .uniform = uniform_numbers(rows, 11)};
  const auto drawn = draw_tokens(hidden, table, bias, draw);
  TokenDraw with_loss = draw;
  token_cross_entropy(hidden, table, bias, at::zeros({rows}, at::kLong), {}, nullptr, &with_loss);
  CHECK(at::equal(with_loss.drawn, drawn));  // from the logits of the loss
  at::NoGradGuard no_grad;
  set_fused(false);
  const auto plain_drawn = draw_tokens(hidden, table, bias, draw);
  set_fused(true);
  CHECK(drawn.ne(plain_drawn).sum().item<int64_t>() <= 3);  // a number may fall on the boundary between two tokens
  const auto check = [&](const Tensor& tokens, const Tensor& logits) {
    const auto expected = at::softmax((logits.to(at::kFloat) + bias.value()) / 0.7, -1)[0] * rows;
    const auto counts = at::bincount(tokens, {}, vocab);
    const double chi_square = ((counts - expected).square() / expected).sum().item<double>();
    const auto freedom = static_cast<double>(vocab - 1);
    CHECK(chi_square < freedom + 5 * std::sqrt(2 * freedom));
    CHECK(chi_square > freedom - 5 * std::sqrt(2 * freedom));
  };
  check(drawn, at::linear(hidden.narrow(0, 0, 1), table.value()));
  auto rounded = table;
  rounded.set_shadow(table.value().to(at::kBFloat16));
  check(draw_tokens(hidden.to(at::kBFloat16), rounded, bias, draw),
        at::linear(hidden.narrow(0, 0, 1).to(at::kBFloat16), rounded.compute()));
}

TEST_CASE("fused embedding takes explicit position ids, and works without segments", "[kernels]") {
  const int64_t width = 21;
  const auto word = param({11, width}, 0.1), gamma = param({width}, 0.6, 0.3, 1), beta = param({width}, 0.7);
  auto position = param({9, width}, 0.2);
  position.set_padding_row(1);
  const auto ids = at::arange(24, at::kLong).mul(5).remainder(11).view({3, 8}), positions = ids.remainder(8) + 1;
  const EmbeddingTables tables{.word = word, .position = position, .norm = {.gamma = gamma, .beta = beta}};
  const EmbeddingIds in{.ids = ids, .positions = positions};
  compare([&](auto&) { return fused::embed(in, tables, {}); }, [&](auto&) { return plain::embed(in, tables, {}); }, {},
          {word, position, gamma, beta}, at::kFloat);
  for (const bool centred : {false, true}) {
    const EmbeddingTables bare{.word = word, .norm = {.gamma = gamma, .centred = centred}};  // no position embeddings
    compare([&](auto&) { return fused::embed(in, bare, {}); }, [&](auto&) { return plain::embed(in, bare, {}); }, {},
            {word, gamma}, at::kFloat);
  }
}

TEST_CASE("norm, activations and cross entropy equal the papers' formulas", "[kernels]") {
  const auto x = numbers({1, 13}, 0.4, 3);
  const auto gamma = param({13}, 0.6, 0.3, 1), beta = param({13}, 0.7);
  naive::Row row, g, b;
  for (int64_t i = 0; i < 13; ++i)
    row.push_back(x[0][i].item<double>()), g.push_back(gamma.value()[i].item<double>()),
        b.push_back(beta.value()[i].item<double>());
  const auto wanted = naive::layer_norm(row, g, b, 1e-5), wanted_rms = naive::rms_norm(row, g, 1e-5);
  const auto got = fused::layer_norm(x, {.gamma = gamma, .beta = beta, .eps = 1e-5}),
             unbiased = fused::layer_norm(x, {.gamma = gamma, .eps = 1e-5}),
             rms = fused::layer_norm(x, {.gamma = gamma, .eps = 1e-5, .centred = false});
  for (int64_t i = 0; i < 13; ++i)
    CHECK(unbiased[0][i].item<double>() == Approx(wanted[i] - b[static_cast<size_t>(i)]).margin(2e-6));
  for (int64_t i = 0; i < 13; ++i) CHECK(got[0][i].item<double>() == Approx(wanted[i]).margin(2e-6));
  for (int64_t i = 0; i < 13; ++i) CHECK(rms[0][i].item<double>() == Approx(wanted_rms[i]).margin(2e-6));
  auto u = at::linspace(-9, 9, 999), out = at::empty_like(u);
  for (const auto& [act, formula] : {std::pair{kernels::Activation::gelu, &naive::gelu},
                                     std::pair{kernels::Activation::gelu_tanh, &naive::gelu_tanh}}) {
    kernels::table().f32.activation_forward(act, 1, 0, 999, u.data_ptr<float>(), nullptr, {}, out.data_ptr<float>());
    double worst = 0;
    for (int64_t i = 0; i < 999; ++i)
      worst = std::max(worst, std::abs(out[i].item<double>() - formula(u[i].item<double>())));
    CHECK(worst < 2e-6);
  }
  const auto table = Param(at::eye(13).set_requires_grad(true), Init::weight),
             bias = Param(at::zeros({13}).set_requires_grad(true), Init::zero);
  Tensor correct;
  CHECK(fused::token_cross_entropy(x, table, bias, at::tensor({4}, at::kLong), {}, &correct).item<double>() ==
        Approx(naive::cross_entropy(row, 4)).epsilon(1e-6));
  CHECK(correct.item<int64_t>() == (x.argmax().item<int64_t>() == 4));
}

TEST_CASE("dropout keeps its share, and its mask does not depend on the number of threads", "[kernels][dropout]") {
  const Dropout drop{.p = 0.1, .key = 1234, .site = 7, .active = true};
  const auto mask = plain::dropout_mask({1000, 300}, drop, at::kCPU);
  const double kept = mask.gt(0).sum().item<double>() / 300000;
  CHECK(std::abs(kept - (1 - std::nearbyint(0.1 * 65536) / 65536)) < 4.5 * std::sqrt(0.09 / 300000));
  CHECK(mask.mean().item<double>() == Approx(1).epsilon(0.005));
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    CHECK(at::equal(fused::dropout(at::ones({1000, 300}), drop), mask));
  }
  // Neighbours are independent: both are dropped as often as expected by chance.
  const auto off = mask.eq(0);
  const double both = off.narrow(1, 0, 299).logical_and(off.narrow(1, 1, 299)).sum().item<double>() / 299000;
  CHECK(std::abs(both - 0.01) < 4.5 * std::sqrt(0.01 / 299000));
}

TEST_CASE("dropout masks made of operators of any device equal those of the counter", "[kernels][dropout]") {
  for (const int64_t width : {1, 5, 16, 127, 128, 129, 300}) {
    const Dropout drop{.p = 0.3, .key = 0x9F3A5B7C01234567, .site = 0x80000007, .active = true};
    const int64_t rows = 37, padded = (width + 127) / 128 * 128;
    const auto mask = plain::dropout_mask({rows, width}, drop, at::kCPU);
    const auto threshold = static_cast<uint32_t>(std::nearbyint(0.3 * 65536));
    const auto kept = static_cast<float>(1 / (1 - threshold / 65536.0));
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < width; ++column) {
        const int64_t element = row * padded + column, within = element % 128;
        const auto counter = static_cast<uint32_t>(16 * (element / 128) + within % 16);
        const auto word = philox({counter, 0, drop.site, 0x64726f70}, drop.key, 7)[static_cast<size_t>(within / 32)];
        const uint32_t draw = within / 16 % 2 ? word >> 16 : word & 0xFFFF;
        wrong += mask[row][column].item<float>() != (draw >= threshold ? kept : 0);
      }
    CHECK(wrong == 0);
    CHECK(at::equal(fused::dropout(at::ones({rows, width}), drop), mask));
  }
  // On the device of its input: no CPU tensor is involved, nor in Longformer's windows.
  const Dropout drop{.p = 0.1, .key = 1, .site = 2, .active = true};
  CHECK(plain::dropout(at::empty({4, 6}, at::kMeta), drop).is_meta());
  CHECK(plain::dropout_mask({4, 6}, drop, at::kMeta).is_meta());
}

TEST_CASE("matrix multiplications by LibTorch are bit-identical for any number of threads and any shape", "[kernels]") {
  const auto run = [](int64_t rows, int64_t in, int64_t out, at::ScalarType type) {
    const auto x = numbers({rows, in}, 0.1).to(type), w = numbers({out, in}, 0.2).to(type),
               dy = numbers({rows, out}, 0.3).to(type);
    auto grad = numbers({out, in}, 0.4), sum = numbers({rows, in}, 0.5);
    add_matmul_tn(grad, dy, x);
    add_matmul_nn(sum, dy, w);
    auto both = numbers({out, in}, 0.4);
    const auto back = matmul_backward(both, dy, x, w);
    CHECK(at::equal(both, grad));
    CHECK(at::equal(back, matmul_nn(dy, w)));
    return std::vector<Tensor>{matmul_nt(x, w),
                               matmul_nt(x, w, numbers({out}, 0.6)),
                               back,
                               grad,
                               sum,
                               batched_matmul(x.view({1, rows, in}), w.t().unsqueeze(0)),
                               batched_matmul(dy.unsqueeze(0).expand({3, rows, out}), w.expand({3, out, in}))};
  };
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const int64_t rows : {1, 7, 13, 300})
      for (const int64_t in : {2, 24, 64})
        for (const int64_t out : {1, 7, 48, 256}) {
          INFO(rows << " x " << in << " x " << out << " in " << type);
          std::vector<std::vector<Tensor>> tensors;
          for (const int threads : {1, 2, 3, 5}) {
            at::set_num_threads(threads);
            tensors.push_back(run(rows, in, out, type));
          }
          at::set_num_threads(2);
          for (const auto& other : tensors)
            for (size_t k = 0; k < other.size(); ++k) CHECK(at::equal(tensors[0][k], other[k]));
          if (type == at::kFloat) {
            const auto x = numbers({rows, in}, 0.1).to(at::kDouble), w = numbers({out, in}, 0.2).to(at::kDouble);
            const auto wanted = at::mm(x, w.t()) + numbers({out}, 0.6).to(at::kDouble);
            CHECK((tensors[0][1].to(at::kDouble) - wanted).abs().max().item<double>() <
                  1e-5 * std::max(1.0, wanted.abs().max().item<double>()));
          }
        }
}

TEST_CASE("batched matrix multiplications, split or whole, equal single ones for any number of threads", "[kernels]") {
  struct Sizes {
    std::vector<int64_t> a, b;
  };
  for (const auto& [a_sizes, b_sizes] :
       {Sizes{{300, 520}, {520, 410}}, Sizes{{3, 260, 500}, {3, 500, 270}}, Sizes{{2, 3, 40, 24}, {24, 17}},
        Sizes{{60, 300}, {2, 300, 400}}, Sizes{{2, 1, 9, 8}, {3, 8, 5}}, Sizes{{5, 4}, {4, 3}},
        Sizes{{2, 0, 4}, {4, 3}}, Sizes{{0, 3, 4}, {0, 4, 5}}}) {
    INFO(at::IntArrayRef(a_sizes) << " and " << at::IntArrayRef(b_sizes));
    const auto a = numbers(a_sizes, 0.1), b = numbers(b_sizes, 0.2);
    const auto run = [&](int threads) {
      at::set_num_threads(threads);
      return outcome([](auto& in) { return fused::matmul(in[0], in[1]); }, {a, b}, {}, at::kFloat);
    };
    const auto one = run(1);
    for (const int threads : {2, 3, 40}) {
      const auto more = run(threads);
      CHECK(at::equal(one.value, more.value));
      for (size_t k = 0; k < 2; ++k) CHECK(at::equal(one.gradients[k], more.gradients[k]));
    }
    at::set_num_threads(2);
    const auto exact = outcome([](auto& in) { return at::matmul(in[0], in[1]); },
                               {a.to(at::kDouble), b.to(at::kDouble)}, {}, at::kDouble);
    CHECK(one.value.sizes() == exact.value.sizes());
    if (one.value.numel() == 0) continue;
    CHECK(error_of(one.value, exact.value) < 1e-5);
    for (size_t k = 0; k < 2; ++k) {
      CHECK(one.gradients[k].sizes() == exact.gradients[k].sizes());
      CHECK(error_of(one.gradients[k], exact.gradients[k]) < 1e-5);
    }
  }
}

TEST_CASE("a matmul with one input that needs no gradient computes only that of the other", "[kernels]") {
  static std::atomic<int> multiplications = 0;
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& f) -> std::unique_ptr<at::ObserverContext> {
        multiplications += std::string_view(f.name()) == "aten::mm";
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  const auto multiplications_of = [&](bool first, bool second) {
    const auto a = numbers({4, 5, 6}, 0.1).set_requires_grad(first),
               b = numbers({4, 6, 7}, 0.2).set_requires_grad(second);
    multiplications = 0;
    fused::matmul(a, b).sum().backward();
    CHECK(a.grad().defined() == first);
    CHECK(b.grad().defined() == second);
    return multiplications.load();
  };
  CHECK(multiplications_of(true, true) == 12);
  CHECK(multiplications_of(true, false) == 8);
  CHECK(multiplications_of(false, true) == 8);
  at::removeCallback(handle);
}

TEST_CASE("the gradient of a softmax of bf16 scores is rounded once", "[kernels]") {
  const int64_t keys = 700;
  const auto scores = numbers({6, keys}, 0.1, 3).to(at::kBFloat16).set_requires_grad(true);
  const auto probe = (numbers({6, keys}, 0.2) + 1).to(at::kBFloat16);
  const auto p = plain::visible_softmax(scores, {});
  p.backward(probe);
  const auto wide = p.detach().to(at::kDouble), dy = probe.to(at::kDouble);
  const auto wanted = wide * (dy - (wide * dy).sum(-1, /*keepdim=*/true));
  const auto error = (scores.grad().to(at::kDouble) - wanted).abs();
  // Half a unit in the last of eight bits, and the fp32 error of a difference of similar numbers.
  CHECK((error - wanted.abs() / 256 - 1e-6 * wide).max().item<double>() <= 0);
}

TEST_CASE("results are bit-identical for any number of threads", "[kernels]") {
  const auto bias = param({96}, 0.5);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    return outcome(
        [&](auto& in) {
          return fused::self_attention(in[0], bias, 4, {}, {.p = 0.1, .key = 4, .site = 1, .active = true});
        },
        {numbers({5, 40, 96}, 0.2)}, {bias}, at::kFloat);
  };
  const auto one = run(1), three = run(3);
  CHECK(at::equal(one.value, three.value));
  for (size_t i = 0; i < one.gradients.size(); ++i) CHECK(at::equal(one.gradients[i], three.gradients[i]));
}

TEST_CASE("packed weights give the same results as the usual ones, for any number of rows, and end with their scope",
          "[kernels][linear]") {
  struct Two : Layer {
    Two() : weight(own_param("weight", {37, 20}, Init::weight)), bias(own_param("bias", {37}, Init::zero)) {}
    Param weight, bias;
  } layer;
  initialize(collect_params(layer), 0.5, false, Rng(1));
  at::NoGradGuard no_grad;
  layer.bias.value().copy_(numbers({37}, 0.4));
  for (const int64_t rows : {1, 5, 32, 70}) {
    const auto x = numbers({2, rows, 20}, 0.7);
    const auto usual = linear(x, layer.weight, layer.bias), bare = linear(x, layer.weight, Param());
    {
      const PackedWeights packed(layer);
      REQUIRE(layer.weight.packed().defined());
      CHECK(error_of(linear(x, layer.weight, layer.bias), usual) < 1e-6);
      CHECK(error_of(linear(x, layer.weight, Param()), bare) < 1e-6);
      CHECK(linear(x.to(at::kDouble), layer.weight, Param()).scalar_type() == at::kDouble);
    }
    CHECK_FALSE(layer.weight.packed().defined());
  }
}

TEST_CASE("tables that are looked up in, and nothing is multiplied by, are packed where they are asked for alone",
          "[kernels][linear]") {
  struct Both : Layer {
    Both()
        : table(own_param("table", {37, 20}, Init::embedding)), weight(own_param("weight", {37, 20}, Init::weight)) {}
    Param table, weight;
  } layer;
  initialize(collect_params(layer), 0.5, false, Rng(1));
  const PackedWeights weights(layer, 256, /*tables=*/false);
  CHECK(layer.weight.packed().defined());
  CHECK_FALSE(layer.table.packed().defined());
  const PackedWeights all(layer);
  CHECK(layer.table.packed().defined());
}

TEST_CASE("without gradients fused operators multiply by packed weights, and a row has the same bits in any batch",
          "[kernels][linear]") {
  struct One : Layer {
    One() : weight(own_param("weight", {40, 24}, Init::weight)), bias(own_param("bias", {40}, Init::zero)) {}
    Param weight, bias;
  } layer;
  initialize(collect_params(layer), 0.5, false, Rng(1));
  at::NoGradGuard no_grad;
  layer.bias.value().copy_(numbers({40}, 0.4));
  const auto x = numbers({150, 24}, 0.7), residual = numbers({150, 40}, 0.2);
  const NormParams norm{.gamma = param({40}, 0.6, 0.3, 1), .beta = param({40}, 0.7)};
  const auto all = [&](int64_t rows) {
    const auto in = x.narrow(0, 0, rows), skip = residual.narrow(0, 0, rows);
    return std::vector{linear(in, layer.weight, layer.bias),
                       linear_activation(in, layer.weight, layer.bias, Activation::gelu),
                       linear_dropout_add(in, layer.weight, layer.bias, {}, skip),
                       linear_dropout_add_norm(in, layer.weight, layer.bias, {}, skip, norm)};
  };
  const auto usual = all(150);
  const PackedWeights packed(layer, 256);
  const auto got = all(150);
  for (size_t k = 0; k < usual.size(); ++k) CHECK(error_of(got[k], usual[k]) < 1e-6);
  for (const int64_t rows : {1, 3, 17, 128}) {
    const auto some = all(rows);
    for (size_t k = 0; k < some.size(); ++k) CHECK(error_of(some[k], got[k].narrow(0, 0, rows)) < 1e-6);
  }
}

TEST_CASE("log-probabilities of tokens equal loops in double, with several labels of a row, packed, fused and plain",
          "[kernels][loss]") {
  const int64_t width = 20;
  for (const int64_t vocab : {37, 2 * 2048 + 5})
    for (const bool has_bias : {false, true}) {
      struct Head : Layer {
        Head(int64_t v, int64_t d) : table(own_param("table", {v, d}, Init::weight)) {}
        Param table;
      } head(vocab, width);
      initialize(collect_params(head), 0.5, false, Rng(1));
      const auto bias = has_bias ? param({vocab}, 0.9) : Param();
      const int64_t n = 530;
      const auto hidden = numbers({n, width}, 0.3, 2);
      std::vector<int64_t> rows, labels;
      for (int64_t r = 0; r < n; ++r)
        for (int64_t k = 0; k < r % 3; ++k) {
          rows.push_back(r);
          labels.push_back((r * 31 + k * 7) % vocab);
        }
      const auto row = at::tensor(rows, at::kLong), label = at::tensor(labels, at::kLong);
      const auto get = [&] { return token_log_probabilities(hidden, head.table, bias, row, label); };
      const auto fused = get();
      set_fused(false);
      const auto plain = get();
      set_fused(true);
      const auto packed = [&] {
        const PackedWeights scope(head);
        return get();
      }();
      CHECK(fused.scalar_type() == at::kDouble);
      auto logits = at::matmul(hidden.to(at::kDouble), head.table.value().detach().to(at::kDouble).t());
      if (has_bias) logits = logits + bias.value().detach().to(at::kDouble);
      for (const size_t m : {size_t{0}, size_t{1}, size_t{200}, rows.size() - 1}) {
        naive::Row scores(static_cast<size_t>(vocab));
        for (int64_t v = 0; v < vocab; ++v) scores[static_cast<size_t>(v)] = logits[rows[m]][v].item<double>();
        const double wanted = -naive::cross_entropy(scores, static_cast<size_t>(labels[m]));
        const auto at = static_cast<int64_t>(m);
        for (const auto& got : {fused, plain, packed}) CHECK(got[at].item<double>() == Approx(wanted).margin(1e-5));
      }
      CHECK(error_of(packed, fused) < 1e-6);
      CHECK(error_of(plain, fused) < 1e-6);
      CHECK_THROWS_AS(token_log_probabilities(hidden, head.table, bias, row, label + vocab), ShapeError);
    }
}
