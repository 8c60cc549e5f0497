// The fused attention of CUDA, forward and backward, by loops over sequences: scores of fp32, the layouts, types and
// refusals of the kernels in LibTorch's `aten/src/ATen/native/transformers/cuda/attention.cu` and
// attention_backward.cu.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "tests/support/fake_cuda/generator.h"

namespace fake_cuda {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<at::Tensor>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// One sequence: q [H, T, C], k and v [H, S, C] in fp32.
struct Sequence {
  Tensor q, k, v;
  double scale;
  Tensor hidden{};  ///< bool [T, S], true = not attended to; undefined: all are
  Tensor bias{};    ///< [H, T, S], added to the scores; undefined: zeros
  Tensor kept{};    ///< [H, T, S], 0 or 1 / (1 - p); undefined: ones

  Tensor scores() const {
    auto sum = at::matmul(q, k.transpose(1, 2)) * scale;
    if (bias.defined()) sum = sum + bias;
    return hidden.defined() ? sum.masked_fill(hidden, -infinity) : sum;
  }
};

/// Output [H, T, C] and the logarithm of the sum of exp(score) [H, T], +inf for a query without keys, whose output is
/// 0.
std::pair<Tensor, Tensor> attend(const Sequence& in) {
  const auto scores = in.scores();
  auto sums = at::logsumexp(scores, -1);
  sums = sums.masked_fill(sums.eq(-infinity), infinity);
  auto weights = at::exp(scores - sums.unsqueeze(-1));
  if (in.kept.defined()) weights = weights * in.kept;
  return {at::matmul(weights, in.v), sums};
}

struct Gradients {
  Tensor q, k, v, bias;
};

/// `sums` as `attend` gave them. Source: Dao et al. 2022, section 3.1 and algorithm 4 (arXiv 2205.14135).
Gradients attend_backward(const Sequence& in, const Tensor& out, const Tensor& sums, const Tensor& grad) {
  const auto weights = at::exp(in.scores() - sums.unsqueeze(-1));
  auto to_weights = at::matmul(grad, in.v.transpose(1, 2));
  auto used = weights;
  if (in.kept.defined()) {
    to_weights = to_weights * in.kept;
    used = weights * in.kept;
  }
  const auto to_scores = weights * (to_weights - (grad * out).sum(-1, /*keepdim=*/true));
  return {at::matmul(to_scores, in.k) * in.scale, at::matmul(to_scores.transpose(1, 2), in.q) * in.scale,
          at::matmul(used.transpose(1, 2), grad), to_scores};
}

/// Where a sequence stands in tensors of all: a row of [B, T, H, C], or rows from `begin` on of [N, H, C].
struct Place {
  int64_t row, begin, length;
  bool is_unpadded;

  /// [H, T, C] in fp32.
  Tensor read(const Tensor& all) const {
    const auto own = is_unpadded ? all.narrow(0, begin, length) : all[row];
    return own.to(at::kFloat).transpose(0, 1);
  }
  void write(const Tensor& all, const Tensor& values) const {
    const auto own = is_unpadded ? all.narrow(0, begin, length) : all[row];
    own.copy_(values.transpose(0, 1));
  }
};

/// `ends` int32 [B + 1]: the first row of each sequence and the number of rows; undefined: [B, T, H, C].
std::vector<Place> places(const Tensor& all, const MaybeTensor& ends) {
  std::vector<Place> list;
  if (!ends || !ends->defined()) {
    for (int64_t row = 0; row < all.size(0); ++row) list.push_back({row, 0, all.size(1), false});
    return list;
  }
  TORCH_CHECK(ends->scalar_type() == at::kInt, "cu_seqlens must have dtype int32");
  const auto* end = ends->const_data_ptr<int>();
  for (int64_t row = 0; row + 1 < ends->numel(); ++row) list.push_back({row, end[row], end[row + 1] - end[row], true});
  return list;
}

double scale_of(const Tensor& q, std::optional<double> given) {
  return given.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
}

Tensor dropped(const Sequence& in, double p, const PhiloxState& state, int64_t row) {
  if (p == 0) return {};
  return kept_elements({in.q.size(0), in.q.size(1), in.k.size(1)}, 1 - p, state, row).to(at::kFloat) / (1 - p);
}

/// bool [T, S], the keys before `left` and after `right` of a query, the last of which stands at the last key.
Tensor outside(int64_t queries, int64_t keys, int64_t left, int64_t right) {
  const auto query = at::arange(queries).add(keys - queries).unsqueeze(1);
  const auto key = at::arange(keys);
  auto hidden = at::zeros({queries, keys}, at::kBool);
  if (left >= 0) hidden = hidden.logical_or(key.lt(query - left));
  if (right >= 0) hidden = hidden.logical_or(key.gt(query + right));
  return hidden;
}

Tensor state_tensor(const PhiloxState& state) {
  return at::tensor({static_cast<int64_t>(state.seed), static_cast<int64_t>(state.offset)}, at::kLong);
}

PhiloxState state_of(const Tensor& seed, const Tensor& offset) {
  return {static_cast<uint64_t>(seed.item<int64_t>()), static_cast<uint64_t>(offset.item<int64_t>())};
}

// -- FlashAttention ----------------------------------------------------------------------------------------------

struct FlashOptions {
  double dropout, scale;
  bool causal;
  int64_t left, right;  ///< -1: all

  Sequence sequence(const Place& of_q, const Place& of_k, const Tensor& q, const Tensor& k, const Tensor& v,
                    const PhiloxState& state) const {
    Sequence in{of_q.read(q), of_k.read(k), of_k.read(v), scale};
    const auto next = causal ? 0 : right;
    if (left >= 0 || next >= 0) in.hidden = outside(of_q.length, of_k.length, left, next);
    in.kept = dropped(in, dropout, state, of_q.row);
    return in;
  }
};

FlashOptions flash_options(const Tensor& q, double dropout, bool causal, std::optional<double> scale,
                           std::optional<c10::SymInt> left, std::optional<c10::SymInt> right) {
  TORCH_CHECK(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(q.size(-1) % 8 == 0 && q.size(-1) <= 256, "head_size should be a multiple of 8, at most 256");
  const auto number = [](const auto& given) { return given ? given->expect_int() : int64_t{-1}; };
  return {dropout, scale_of(q, scale), causal, number(left), number(right)};
}

/// Rows of logsumexp of a sequence: of [B, H, T], or of [H, N] where rows are unpadded.
Tensor sums_of(const Tensor& all, const Place& place) {
  return place.is_unpadded ? all.narrow(1, place.begin, place.length) : all[place.row];
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& q_ends, const MaybeTensor& k_ends,
    c10::SymInt, c10::SymInt, double dropout, bool causal, bool, std::optional<double> scale,
    std::optional<c10::SymInt> left, std::optional<c10::SymInt> right, const MaybeTensor& seqused_k,
    const MaybeTensor& alibi, const MaybeTensor& block_table, std::optional<int64_t>) {
  TORCH_CHECK(!seqused_k && !alibi && !block_table, "the stand-in for a GPU has no ALiBi and no paged keys");
  const auto options = flash_options(q, dropout, causal, scale, left, right);
  const auto of_q = places(q, q_ends), of_k = places(k, k_ends);
  const auto state = dropout > 0 ? take_state() : PhiloxState{};
  const auto out = at::empty_like(q);
  const bool is_unpadded = q_ends && q_ends->defined();
  const auto sums = is_unpadded ? at::empty({q.size(1), q.size(0)}, at::kFloat)
                                : at::empty({q.size(0), q.size(2), q.size(1)}, at::kFloat);
  for (size_t row = 0; row < of_q.size(); ++row) {
    const auto [own, own_sums] = attend(options.sequence(of_q[row], of_k[row], q, k, v, state));
    of_q[row].write(out, own);
    sums_of(sums, of_q[row]).copy_(own_sums);
  }
  return {out, sums, state_tensor(state), at::zeros({}, at::kLong), at::empty({0}, q.options())};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor& out, const Tensor& sums, const Tensor& q_ends,
                                                  const Tensor& k_ends, c10::SymInt, c10::SymInt, double dropout,
                                                  bool causal, const Tensor& state, const Tensor&,
                                                  std::optional<double> scale, std::optional<c10::SymInt> left,
                                                  std::optional<c10::SymInt> right) {
  const auto options = flash_options(q, dropout, causal, scale, left, right);
  const auto of_q = places(q, q_ends), of_k = places(k, k_ends);
  const auto drawn = state_of(state[0], state[1]);
  const auto q_grad = at::empty_like(q), k_grad = at::empty_like(k), v_grad = at::empty_like(v);
  for (size_t row = 0; row < of_q.size(); ++row) {
    const auto& place = of_q[row];
    const auto own = attend_backward(options.sequence(place, of_k[row], q, k, v, drawn), place.read(out),
                                     sums_of(sums, place), place.read(grad));
    place.write(q_grad, own.q);
    of_k[row].write(k_grad, own.k);
    of_k[row].write(v_grad, own.v);
  }
  return {q_grad, k_grad, v_grad};
}

// -- Memory-efficient attention ----------------------------------------------------------------------------------

/// custom_mask_type: no mask, causal from the first query and key, causal to the last ones.
enum Mask : int64_t { all_keys = 0, causal_from_first = 1, causal_to_last = 2 };

struct EfficientOptions {
  double dropout, scale;
  int64_t mask;
  Tensor bias;  ///< [B, H, T, S] or undefined

  Sequence sequence(const Place& of_q, const Place& of_k, const Tensor& q, const Tensor& k, const Tensor& v,
                    const PhiloxState& state) const {
    Sequence in{of_q.read(q), of_k.read(k), of_k.read(v), scale};
    if (mask == causal_from_first) in.hidden = at::ones({of_q.length, of_k.length}, at::kBool).triu(1);
    if (mask == causal_to_last) in.hidden = outside(of_q.length, of_k.length, -1, 0);
    if (bias.defined()) in.bias = bias[of_q.row].to(at::kFloat);
    in.kept = dropped(in, dropout, state, of_q.row);
    return in;
  }
};

EfficientOptions efficient_options(const Tensor& q, const Tensor& k, const MaybeTensor& bias, double dropout,
                                   int64_t mask, std::optional<double> scale, std::optional<int64_t> window) {
  TORCH_CHECK(window.value_or(0) <= 0, "the stand-in for a GPU has no windows in memory-efficient attention");
  EfficientOptions options{dropout, scale_of(q, scale), mask, bias.value_or(Tensor())};
  if (!options.bias.defined()) return options;
  TORCH_CHECK(options.bias.scalar_type() == q.scalar_type(), "invalid dtype for bias - should match query's dtype");
  TORCH_CHECK(options.bias.sizes() == at::IntArrayRef({q.size(0), q.size(2), q.size(1), k.size(1)}),
              "the bias is [B, H, T, S]");
  return options;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt> efficient_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, const MaybeTensor& q_ends,
    const MaybeTensor& k_ends, std::optional<c10::SymInt> longest_q, std::optional<c10::SymInt> longest_k,
    double dropout, int64_t mask, bool wants_sums, std::optional<double> scale, const MaybeTensor& k_lengths,
    std::optional<int64_t> window) {
  TORCH_CHECK(!k_lengths, "the stand-in for a GPU takes no lengths of keys");
  const auto options = efficient_options(q, k, bias, dropout, mask, scale, window);
  const bool is_unpadded = q_ends && q_ends->defined();
  // Unpadded rows are [1, N, H, C].
  const auto in_q = is_unpadded ? q.squeeze(0) : q, in_k = is_unpadded ? k.squeeze(0) : k,
             in_v = is_unpadded ? v.squeeze(0) : v;
  const auto of_q = places(in_q, q_ends), of_k = places(in_k, k_ends);
  const auto most_q = is_unpadded ? longest_q.value().expect_int() : q.size(1);
  const auto most_k = is_unpadded ? longest_k.value().expect_int() : k.size(1);
  const auto state = dropout > 0 ? take_state() : PhiloxState{};
  const auto out = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options());
  const int64_t kept_sums = wants_sums ? (most_q + 31) / 32 * 32 : 0;
  const auto sums = at::full({std::ssize(of_q), q.size(2), kept_sums}, infinity, at::kFloat);
  for (size_t row = 0; row < of_q.size(); ++row) {
    const auto [own, own_sums] = attend(options.sequence(of_q[row], of_k[row], in_q, in_k, in_v, state));
    of_q[row].write(is_unpadded ? out.squeeze(0) : out, own);
    if (wants_sums) sums[of_q[row].row].narrow(1, 0, of_q[row].length).copy_(own_sums);
  }
  const auto drawn = state_tensor(state);
  return {out, sums, drawn[0].clone(), drawn[1].clone(), most_q, most_k};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias, const Tensor& out,
    const MaybeTensor& q_ends, const MaybeTensor& k_ends, c10::SymInt, c10::SymInt, const Tensor& sums, double dropout,
    const Tensor& seed, const Tensor& offset, int64_t mask, bool bias_needs_grad, std::optional<double> scale,
    std::optional<int64_t>, std::optional<int64_t> window, bool) {
  const auto options = efficient_options(q, k, bias, dropout, mask, scale, window);
  const bool is_unpadded = q_ends && q_ends->defined();
  const auto rows = [&](const Tensor& all) { return is_unpadded ? all.squeeze(0) : all; };
  const auto of_q = places(rows(q), q_ends), of_k = places(rows(k), k_ends);
  const auto drawn = state_of(seed, offset);
  const auto q_grad = at::empty_like(q), k_grad = at::empty_like(k), v_grad = at::empty_like(v);
  const auto bias_grad = bias_needs_grad ? at::empty(options.bias.sizes(), q.options()) : Tensor();
  for (size_t row = 0; row < of_q.size(); ++row) {
    const auto& place = of_q[row];
    const auto in = options.sequence(place, of_k[row], rows(q), rows(k), rows(v), drawn);
    const auto own_sums = sums[place.row].narrow(1, 0, place.length);
    const auto own = attend_backward(in, place.read(rows(out)), own_sums, place.read(rows(grad)));
    place.write(rows(q_grad), own.q);
    of_k[row].write(rows(k_grad), own.k);
    of_k[row].write(rows(v_grad), own.v);
    if (bias_needs_grad) bias_grad[place.row].copy_(own.bias);
  }
  return {q_grad, k_grad, v_grad, bias_grad};
}

}  // namespace
}  // namespace fake_cuda

// Kernels of the processor, which the device's operators fall back to.
TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("_flash_attention_forward", fake_cuda::flash_forward);
  library.impl("_flash_attention_backward", fake_cuda::flash_backward);
  library.impl("_efficient_attention_forward", fake_cuda::efficient_forward);
  library.impl("_efficient_attention_backward", fake_cuda::efficient_backward);
}
