// Attention by random features.
#include "core/tensor/plain_heads.h"

#include <cmath>

namespace cloze::plain {

namespace {

/// Sum over j <= i of (a_i . b_j) v_j: a, b [B, H, T, R], v [B, H, T, C]. One sum is kept for each chunk of the
/// sequence, so that memory is linear.
Tensor causal_sums(const Tensor& a, const Tensor& b, const Tensor& v) {
  constexpr int64_t chunk = 64;
  const auto chunks = [&](const Tensor& x) {
    return at::constant_pad_nd(x, {0, 0, 0, chunk - 1}).unfold(2, chunk, chunk).transpose(-1, -2);
  };  // [B, H, n, 64, .]
  const auto ca = chunks(a), cb = chunks(b), cv = chunks(v);
  const auto sums = at::matmul(cb.transpose(-1, -2), cv);  // [B, H, n, R, C]
  const auto before = at::constant_pad_nd(sums.cumsum(2), {0, 0, 0, 0, 1, 0})
                          .slice(2, 0, -1);  // of the preceding chunks; no difference of large sums
  const auto mixed = at::matmul(ca, before) + at::matmul(at::matmul(ca, cb.transpose(-1, -2)).tril(), cv);
  const auto position = at::ones_like(a.select(-1, 0).select(0, 0).select(0, 0), at::kLong).cumsum(0) - 1;
  return mixed.flatten(2, 3).index_select(2, position);  // [B, H, T, C]
}

/// Random features of queries and keys, [B, H, T, R].
struct Features {
  Tensor q, k;
  /// Of causal attention epsilon at each position [B, H, T, 1], relative to the largest key not after it; undefined:
  /// `k` includes epsilon.
  Tensor causal_epsilon{};
};

/// The features of scaled queries and keys [B, H, T, C]; `absent` bool [B, 1, T, 1], true = padding; undefined: none.
Features features_of(const Tensor& q, const Tensor& k, const RandomFeatures& f, const Tensor& absent, bool causal) {
  const auto w = f.projection.to(q.scalar_type()).t();
  const auto sq = at::matmul(q, w), sk = at::matmul(k, w);  // [B, H, T, R]
  const auto hq = 0.5 * q.square().sum(-1, /*keepdim=*/true), hk = 0.5 * k.square().sum(-1, /*keepdim=*/true);
  const auto only_real = [&](const Tensor& x, double value) {
    return absent.defined() ? x.masked_fill(absent, value) : x;
  };
  switch (f.kernel) {
    case FeatureKernel::relu:
      return {at::relu(sq) + f.epsilon, only_real(at::relu(sk) + f.epsilon, 0)};
    case FeatureKernel::softmax: {
      const auto peaks = only_real(sk.detach().amax(-1, /*keepdim=*/true), -1e30);  // [B, H, T, 1]
      const auto top = peaks.amax(2, /*keepdim=*/true);                             // [B, H, 1, 1]
      const auto fq = at::exp(sq - hq - sq.detach().amax(-1, /*keepdim=*/true)) + f.epsilon;
      const auto fk = at::exp(only_real(sk - hk - top, -1e30));
      if (!causal) return {fq, only_real(fk + f.epsilon, 0)};
      return {fq, fk, f.epsilon * at::exp(std::get<0>(at::cummax(peaks, 2)) - top)};
    }
    case FeatureKernel::trigonometric: {
      const auto height = only_real(hk, -1e30);
      const auto level = at::exp(height - height.amax(2, /*keepdim=*/true).detach());
      return {at::cat({sq.sin(), sq.cos()}, -1), at::cat({sk.sin() * level, sk.cos() * level}, -1)};
    }
  }
  return {};
}

}  // namespace

Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& f) {
  const auto type = qkv.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto parts = split_heads(qkv, bias, heads);  // [B, H, T, C]
  const double scale = std::pow(static_cast<double>(parts.q.size(-1)), -0.25);
  auto v = parts.v.to(type);
  v = at::cat({v, at::ones_like(v.narrow(-1, 0, 1))}, -1);  // the last column becomes the denominator
  Tensor absent;                                            // bool [B, 1, T, 1]
  if (context.key_mask.defined()) absent = context.key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
  const auto [fq, fk, causal_epsilon] =
      features_of(parts.q.to(type) * scale, parts.k.to(type) * scale, f, absent, context.causal);
  Tensor sums;  // [B, H, T, C + 1]
  if (context.causal) {
    sums = causal_sums(fq, fk, v);
    if (causal_epsilon.defined())
      sums = sums + causal_epsilon * fq.sum(-1, /*keepdim=*/true) *
                        (absent.defined() ? v.masked_fill(absent, 0) : v).cumsum(2);
  } else {
    sums = at::matmul(fq, at::matmul(fk.transpose(-1, -2), v));
  }
  const auto numerator = sums.slice(-1, 0, -1);
  auto denominator = sums.slice(-1, -1);
  if (f.kernel == FeatureKernel::trigonometric)
    denominator = denominator + 2e-6 * denominator.detach().abs().le(1e-6).to(type);
  const auto all_masked = denominator.eq(0);
  const auto mixed = (numerator / denominator.masked_fill(all_masked, 1)).masked_fill(all_masked, 0);
  return mixed.transpose(1, 2).flatten(2).to(qkv.scalar_type());  // [B, T, D]
}

}  // namespace cloze::plain
