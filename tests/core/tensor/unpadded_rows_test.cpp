#include "core/error.h"
#include "core/tensor/fused.h"
#include "core/tensor/param.h"
#include "core/tensor/plain.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"

using namespace cloze;

namespace {

constexpr int64_t longest = 61, heads = 2, width = 48;

/// Rows of these lengths, padded to `longest`.
Tensor mask_of(const std::vector<int64_t>& lengths) {
  auto mask = at::zeros({static_cast<int64_t>(lengths.size()), longest}, at::kBool);
  for (size_t b = 0; b < lengths.size(); ++b) mask[static_cast<int64_t>(b)].narrow(0, 0, lengths[b]).fill_(true);
  return mask;
}

/// The same with padding: `f` of [B, T, 3 D] and of the context with a mask.
template <class F>
Tensor by_padded_rows(const Tensor& unpadded, const UnpaddedRows& rows, const AttentionContext& context, const F& f) {
  auto padded = context;
  padded.unpadded = nullptr;
  padded.key_mask = rows.mask;
  return rows.unpad(f(rows.pad(unpadded), padded));
}

}  // namespace

TEST_CASE("unpadded rows hold the real tokens, and come back with zeros at padding", "[kernels]") {
  const auto mask = mask_of({3, 0, 61, 5});
  const auto rows = unpad_rows(mask);
  REQUIRE(rows);
  CHECK(rows->begins == std::vector<int64_t>{0, 3, 3, 64, 69});
  const auto padded = numbers({4, longest, 8}, 0.2);
  const auto unpadded = rows->unpad(padded);
  CHECK(unpadded.equal(padded.masked_select(mask.unsqueeze(-1)).view({1, 69, 8})));
  CHECK(rows->pad(unpadded).equal(padded * mask.unsqueeze(-1)));
  CHECK(rows->mask.equal(mask));
  const auto some = at::tensor({int64_t{2}, 2 * longest + 60, 3 * longest + 4});
  CHECK(rows->unpad(padded)
            .squeeze(0)
            .index_select(0, rows->unpadded_indices(some))
            .equal(padded.flatten(0, 1).index_select(0, some)));
  CHECK_THROWS_AS(rows->unpadded_indices(at::tensor({3 * longest + 5})), ShapeError);
  CHECK(rows->positions.slice(0, 64).equal(at::arange(5)));
}

TEST_CASE("rows are unpadded where that leaves something out, and begin with their real tokens", "[kernels]") {
  CHECK_FALSE(unpad_rows({}));
  CHECK_FALSE(unpad_rows(at::ones({2, 5}, at::kBool)));
  CHECK_FALSE(unpad_rows(at::zeros({2, 5}, at::kBool)));
  CHECK_FALSE(unpad_rows(mask_of({9, 12}).flip(1)));
  auto hole = mask_of({9, 12});
  hole[1][4] = false;
  CHECK_FALSE(unpad_rows(hole));
}

TEST_CASE("attention of unpadded rows equals that of padded ones, with the same dropout", "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto rows = unpad_rows(mask_of({7, longest, 0, 1, 33, 48, 12}));
  const auto qkv = numbers({1, rows->begins.back(), 3 * width}, 0.1, 2);
  const auto bias = param({3 * width}, 0.5);
  auto globals = at::zeros({7, longest}, at::kBool);
  globals.select(1, 0).fill_(true);
  globals[1].narrow(0, 3, 4).fill_(true);
  globals[4][40] = true;  // of padding, which nobody attends to
  const auto form =
      GENERATE_COPY(AttentionContext{}, AttentionContext{.causal = true},
                    AttentionContext{.causal = true, .prefix = at::tensor(std::vector<int64_t>{3, 20, 0, 1, 2, 9, 12})},
                    AttentionContext{.window = 4},
                    AttentionContext{.window = 3, .dilation = 2, .dilated_heads = 1, .global_mask = globals});
  for (const double p : {0.0, 0.2}) {
    INFO(isa << " causal " << form.causal << " window " << form.window << " p " << p);
    const Dropout drop{.p = p, .key = 8, .site = 2, .active = true};
    auto context = form;
    context.unpadded = rows;
    compare([&](auto& in) { return fused::self_attention(in[0], bias, heads, context, drop); },
            [&](auto& in) {
              return by_padded_rows(in[0], *rows, context, [&](const Tensor& all, const AttentionContext& padded) {
                return plain::self_attention(all, bias, heads, padded, drop);
              });
            },
            {qkv}, {bias}, type);
  }
}

TEST_CASE("unpadded rows of different lengths have the same biases of distances, and add to the same gradients",
          "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto rows = unpad_rows(mask_of({7, longest, 1, 33, 50}));
  const auto qkv = numbers({1, rows->begins.back(), 3 * width}, 0.1, 2);
  const auto distances = numbers({heads, 2 * longest - 1}, 0.7);
  const auto with = [&](const Tensor& of_distances) {
    AttentionContext context{.distance_bias = of_distances, .scale = 1};
    context.unpadded = rows;
    return context;
  };
  compare([&](auto& in) { return fused::self_attention(in[0], {}, heads, with(in[1]), {}); },
          [&](auto& in) {
            return by_padded_rows(in[0], *rows, with(in[1]), [&](const Tensor& all, const AttentionContext& padded) {
              return plain::self_attention(all, {}, heads, padded, {});
            });
          },
          {qkv, distances}, {}, at::kFloat);
}

TEST_CASE("random-feature attention of unpadded rows equals that of padded ones", "[kernels][attention]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const bool causal = GENERATE(false, true);
  const auto rows = unpad_rows(mask_of({7, longest, 0, 1, 33}));
  const auto qkv = numbers({1, rows->begins.back(), 3 * width}, 0.1, 0.7);
  const auto bias = param({3 * width}, 0.5, 0.3);
  RandomFeatures features{.projection = at::empty({24, width / heads})};
  draw_features(features.projection, Rng(3).stream("features"));
  AttentionContext context{.causal = causal};
  context.unpadded = rows;
  compare([&](auto& in) { return fused::favor_attention(in[0], bias, heads, context, features); },
          [&](auto& in) {
            return by_padded_rows(in[0], *rows, context, [&](const Tensor& all, const AttentionContext& padded) {
              return plain::favor_attention(all, bias, heads, padded, features);
            });
          },
          {qkv}, {bias}, type);
}
