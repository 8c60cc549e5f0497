#include "core/kernels/kernels.h"
#include "core/tensor/device.h"
#include "core/tensor/plain.h"
#include "tests/support/compare.h"
#include "tests/support/fake_nvrtc/kernel_runs.h"

using namespace cloze;

TEST_CASE("every operator of a GPU equals its plain form, values and gradients", "[device]") {
  const auto width = GENERATE(int64_t{30}, int64_t{64}, int64_t{264});
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  INFO("width " << width << ", " << c10::toString(type));
  const int64_t rows = 70, out = 24;
  const auto x = numbers({2, rows / 2, width}, 0.1), residual = numbers({2, rows / 2, out}, 0.2);
  const auto w = param({out, width}, 0.4, 0.3), b = param({out}, 0.5), gamma = param({out}, 0.6, 0.3, 1),
             beta = param({out}, 0.7);
  const auto drop = GENERATE(Dropout{}, Dropout{.p = 0.2, .key = 99, .site = 4, .active = true});

  compare([&](auto& in) { return device::linear(in[0], w, b); }, [&](auto& in) { return plain::linear(in[0], w, b); },
          {x}, {w, b}, type);
  compare([&](auto& in) { return device::dropout(in[0], drop); }, [&](auto& in) { return plain::dropout(in[0], drop); },
          {x}, {}, type);
  for (const auto act : {Activation::gelu, Activation::gelu_new, Activation::relu, Activation::silu, Activation::mish})
    if (act != Activation::relu || type == at::kFloat)  // at its corner, rounding to bf16 moves a slope from 0 to 1
      compare([&](auto& in) { return device::linear_activation(in[0], w, b, act, drop); },
              [&](auto& in) { return plain::linear_activation(in[0], w, b, act, drop); }, {x}, {w, b}, type);
  for (const bool centred : {true, false})
    for (const bool has_beta : {true, false}) {
      INFO("centred " << centred << " beta " << has_beta);
      const NormParams norm{
          .gamma = gamma, .beta = has_beta ? beta : Param(), .eps = has_beta ? 1e-12 : 1e-5, .centred = centred};
      auto params = has_beta ? std::vector<Param>{gamma, beta} : std::vector<Param>{gamma};
      compare([&](auto& in) { return device::layer_norm(in[0], norm); },
              [&](auto& in) { return plain::layer_norm(in[0], norm); }, {residual}, params, type);
      params.insert(params.end(), {w, b});
      compare([&](auto& in) { return device::linear_dropout_add_norm(in[0], w, b, drop, in[1], norm); },
              [&](auto& in) { return plain::linear_dropout_add_norm(in[0], w, b, drop, in[1], norm); }, {x, residual},
              params, type);
    }
  const FirstLayer first{w, b, Activation::gelu, drop};
  const auto second = param({width, out}, 0.8, 0.3), second_bias = param({width}, 0.9);
  compare([&](auto& in) { return device::linear_dropout_add(in[0], second, second_bias, drop, in[0], &first); },
          [&](auto& in) { return plain::linear_dropout_add(in[0], second, second_bias, drop, in[0], &first); }, {x},
          {w, b, second, second_bias}, type);
}

TEST_CASE("the end of a sublayer is one product and one kernel", "[device]") {
  static int kernels = 0;
  fake_nvrtc::around_kernels().begin = [](const char*) { ++kernels; };
  const Param w = param({24, 24}, 0.4), b = param({24}, 0.5), gamma = param({24}, 0.6);
  kernels = 0;
  device::linear_dropout_add_norm(numbers({5, 24}, 0.1), w, b, {.p = 0.1, .key = 1, .active = true},
                                  numbers({5, 24}, 0.2), {.gamma = gamma});
  CHECK(kernels == 1);
  fake_nvrtc::around_kernels() = {};
}

TEST_CASE("rows that are left out do not move the masks of others", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto x = numbers({9, 300}, 0.1).to(type), index = at::tensor(std::vector<int64_t>{7, 0, 3}, at::kLong);
  Dropout drop{.p = 0.4, .key = 3, .site = 1, .active = true};
  const auto all = device::dropout(x, drop).index_select(0, index);
  drop.rows = index;
  CHECK(at::equal(device::dropout(x.index_select(0, index), drop), all));
}

TEST_CASE("rotations of a GPU equal those of the plain form", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto x = numbers({2, 9, 20}, 0.1), angles = numbers({9, 4}, 0.3).cumsum(1);
  const auto table = at::cat({angles.cos(), angles.sin()}, 1);
  const auto w = param({3 * 16, 20}, 0.4, 0.3), b = param({3 * 16}, 0.5);
  compare([&](auto& in) { return device::linear_rotary(in[0], w, b, table); },
          [&](auto& in) { return plain::linear_rotary(in[0], w, b, table); }, {x}, {w, b}, type);
}

TEST_CASE("attention of a GPU equals the plain form under every mask", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto real =
      at::tensor(std::vector<int64_t>{1, 1, 1, 1, 0, 1, 1, 0, 0, 0}, at::kLong).view({2, 5}).to(at::kBool);
  const auto biases = numbers({2, 9}, 0.7);
  const auto context = GENERATE_COPY(AttentionContext{}, AttentionContext{.causal = true},
                                     AttentionContext{.key_mask = real}, AttentionContext{.distance_bias = biases},
                                     AttentionContext{.key_mask = real, .causal = true, .scale = 1});
  const int64_t width = GENERATE(16, 8);  // 8: heads that no kernel takes
  const auto qkv = numbers({2, 5, 3 * width}, 0.1), kv = numbers({2, 5, 2 * width}, 0.2);
  const auto b = param({3 * width}, 0.5), b_q = param({width}, 0.6), b_kv = param({2 * width}, 0.7);
  compare([&](auto& in) { return device::self_attention(in[0], b, 2, context, {}); },
          [&](auto& in) { return plain::self_attention(in[0], b, 2, context, {}); }, {qkv}, {b}, type);
  const auto w = param({3 * width, 12}, 0.4, 0.3);
  compare([&](auto& in) { return device::linear_self_attention(in[0], w, b, 2, context, {}); },
          [&](auto& in) { return plain::self_attention(plain::linear(in[0], w, {}), b, 2, context, {}); },
          {numbers({2, 5, 12}, 0.2)}, {w, b}, type);
  compare([&](auto& in) { return device::cross_attention(in[0], b_q, in[1], b_kv, 2, context, {}); },
          [&](auto& in) { return plain::cross_attention(in[0], b_q, in[1], b_kv, 2, context, {}); },
          {numbers({2, 5, width}, 0.3), kv}, {b_q, b_kv}, type);
}

TEST_CASE("attention of a GPU takes rows without their padding, under every restriction", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t width = GENERATE(16, 8);  // 8: heads that no kernel takes
  const auto rows = unpad_rows(at::arange(7).unsqueeze(0).lt(at::tensor(std::vector<int64_t>{4, 7, 1}).unsqueeze(1)));
  const auto context =
      GENERATE_COPY(AttentionContext{}, AttentionContext{.causal = true}, AttentionContext{.window = 2},
                    AttentionContext{.distance_bias = numbers({2, 13}, 0.7)},
                    AttentionContext{.causal = true, .prefix = at::tensor(std::vector<int64_t>{2, 0, 1}, at::kLong)});
  auto unpadded = context, padded = context;
  unpadded.unpadded = rows;
  padded.key_mask = rows->mask;
  const auto b = param({3 * width}, 0.5);
  compare([&](auto& in) { return device::self_attention(in[0], b, 2, unpadded, {}); },
          [&](auto& in) { return rows->unpad(plain::self_attention(rows->pad(in[0]), b, 2, padded, {})); },
          {numbers({1, 12, 3 * width}, 0.1)}, {b}, type);
}

TEST_CASE("attention of a GPU in a window has its global key once, with the padding of rows and without", "[device]") {
  const auto type = at::kBFloat16;
  const int64_t length = 150, width = GENERATE(16, 64);
  const bool pads = GENERATE(true, false);
  const auto lengths = pads ? std::vector<int64_t>{140, 150, 3} : std::vector<int64_t>{150, 150, 150};
  const auto mask = at::arange(length).unsqueeze(0).lt(at::tensor(lengths).unsqueeze(1));
  const auto rows = unpad_rows(mask);
  AttentionContext context{.window = 3, .globals = 1, .first_is_global = true}, padded = context;
  context.global_mask = padded.global_mask = at::arange(length).eq(0).expand({3, length});
  context.unpadded = rows;
  if (pads) padded.key_mask = mask;
  const auto with = [&](const Tensor& x) { return pads ? rows->pad(x) : x; };
  const auto without = [&](const Tensor& x) { return pads ? rows->unpad(x) : x; };
  const auto b = param({3 * width}, 0.5);
  compare([&](auto& in) { return device::self_attention(in[0], b, 2, context, {}); },
          [&](auto& in) { return without(plain::self_attention(with(in[0]), b, 2, padded, {})); },
          {pads ? numbers({1, 293, 3 * width}, 0.1) : numbers({3, length, 3 * width}, 0.1)}, {b}, type);
}

TEST_CASE("scores of positions and segments of a GPU equal the plain form, for both streams of XLNet", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const bool predicts = GENERATE(true, false), has_masks = GENERATE(true, false), is_large = GENERATE(true, false);
  INFO("predicts " << predicts << " masks " << has_masks << " large " << is_large);
  const int64_t heads = is_large ? 11 : 2, head_width = is_large ? 24 : 8, width = heads * head_width;
  const int64_t length = is_large ? 70 : 6, keys = length + 3, queries = predicts ? length / 2 : length;
  const auto small = [&](double phase) { return param({heads, head_width}, phase); };
  RelativeTerms terms{
      .r_w = small(0.2), .r_r = small(0.9), .r_s = small(1.3), .segments = param({2, heads, head_width}, 2.1)};
  auto params = std::vector<Param>{terms.r_w, terms.r_r};
  if (predicts)
    terms.distance_offset = length - at::arange(2 * queries, at::kLong).remainder(length).view({2, queries});
  if (has_masks) {
    params.insert(params.end(), {terms.r_s, terms.segments});
    terms.distance_list = at::tensor(std::vector<int64_t>{1, 0}, at::kLong);
    terms.segments_differ = numbers({2, queries, keys}, 0.8).gt(0.1);
    terms.visible = numbers({2, queries, keys}, 1.9).le(0.2);
    terms.visible[1][0].fill_(false);  // attends to nothing
  }
  compare([&](auto& in) { return device::relative_attention(in[0], in[1], in[2], heads, terms, {}); },
          [&](auto& in) { return plain::relative_attention(in[0], in[1], in[2], heads, terms, {}); },
          {numbers({2, queries, width}, 0.1), numbers({2, keys, 2 * width}, 0.3),
           numbers({has_masks ? 2 : 1, keys + length, width}, 0.6)},
          params, type);
}

TEST_CASE("terms of clamped distances of a GPU equal the plain form, near and far", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t length = GENERATE(1, 5, 70), reach = GENERATE(1, 3, 40);
  INFO("length " << length << " reach " << reach);
  compare([&](auto& in) { return device::add_by_distance(in[0], in[1]); },
          [&](auto& in) { return plain::add_by_distance(in[0], in[1]); },
          {numbers({2, 3, length, length}, 0.1), numbers({2, 3, length, 2 * reach + 1}, 0.2)}, {}, type);
  compare([&](auto& in) { return device::sum_by_distance(in[0], reach); },
          [&](auto& in) { return plain::sum_by_distance(in[0], reach); }, {numbers({2, 3, length, length}, 0.3)}, {},
          type);
}

TEST_CASE("rows lose their padding on a GPU, and get it back", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto rows = unpad_rows(at::arange(7).unsqueeze(0).lt(at::tensor(std::vector<int64_t>{4, 7, 0}).unsqueeze(1)));
  const auto inverse_index = at::full({21}, -1, at::kLong).index_copy(0, rows->index, at::arange(11));
  compare([&](auto& in) { return device::moved_rows(in[0].flatten(0, 1), rows->index, inverse_index).unsqueeze(0); },
          [&](auto& in) { return rows->unpad(in[0]); }, {numbers({3, 7, 260}, 0.1)}, {}, type);
  compare([&](auto& in) { return device::moved_rows(in[0].squeeze(0), inverse_index, rows->index).view({3, 7, 260}); },
          [&](auto& in) { return rows->pad(in[0]); }, {numbers({1, 11, 260}, 0.1)}, {}, type);
}

TEST_CASE("gradients of rows that are taken several times are added, and those of distances", "[device]") {
  const auto index = at::tensor(std::vector<int64_t>{3, 0, 3, 1, 3}, at::kLong);
  compare([&](auto& in) { return device::take_rows(in[0], index); },
          [&](auto& in) { return plain::take_rows(in[0], index); }, {numbers({5, 6}, 0.1)}, {}, at::kFloat);
}

TEST_CASE("a memory cell of a GPU equals the plain form", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto both = [](auto* cell) {
    return [cell](auto& in) {
      const auto state = cell(in[0], in[1].to(at::kFloat));
      return at::cat({state.output.to(at::kFloat), state.cell}, 1);
    };
  };
  compare(both(device::memory_cell), both(plain::memory_cell), {numbers({5, 4 * 21}, 0.1), numbers({5, 21}, 0.2)}, {},
          type);
}

TEST_CASE("losses of a GPU equal those of the plain form, with every option", "[device]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto hidden = numbers({70, 12}, 0.1);
  const auto table = param({300, 12}, 0.4, 0.8), bias = param({300}, 0.5);
  const auto labels = at::arange(70, at::kLong).mul(17).remainder(300), weights = numbers({70}, 0.9).abs();
  const auto shape =
      GENERATE_COPY(LossOptions{}, LossOptions{.label_smoothing = 0.1, .z_loss = 1e-2, .weights = weights});
  Tensor hits, expected;
  compare([&](auto& in) { return device::token_cross_entropy(in[0], table, bias, labels, shape, &hits); },
          [&](auto& in) { return plain::token_cross_entropy(in[0], table, bias, labels, shape, &expected); }, {hidden},
          {table, bias}, type);
  if (type == at::kFloat) CHECK(hits.item<int64_t>() == expected.item<int64_t>());
}

TEST_CASE("embeddings of a GPU equal the plain form", "[device]") {
  const auto ids = at::arange(14, at::kLong).remainder(5).view({2, 7}), types = ids.remainder(2);
  const auto word = param({5, 24}, 0.1), position = param({9, 24}, 0.2), type = param({2, 24}, 0.3),
             gamma = param({24}, 0.6, 0.3, 1), beta = param({24}, 0.7);
  const Dropout drop{.p = 0.3, .key = 5, .site = 2, .active = true};
  const EmbeddingTables tables{.word = word, .position = position, .type = type, .norm = {gamma, beta}, .scale = 2};
  compare([&](auto&) { return device::embed({ids, types}, tables, drop); },
          [&](auto&) { return plain::embed({ids, types}, tables, drop); }, {}, {word, position, type, gamma, beta},
          at::kFloat);
}
