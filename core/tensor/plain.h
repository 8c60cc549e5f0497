#pragma once
// The operators of ops.h in plain LibTorch: differentiable by autograd, traceable, on any device and in any dtype.
// No size is read from a tensor here, so that a trace runs at other shapes.
#include "core/tensor/ops.h"

namespace cloze::plain {

/// The parameter in `dtype`: the value itself, its bf16 shadow, or (with gradients enabled) a cast of the value.
Tensor weight(const Param& param, at::ScalarType dtype);

/// [B, T, H C] to [B, H, T, C].
Tensor heads_of(const Tensor& x, int64_t heads);
/// softmax(scores) over the last axis where `masked` (bool, may be undefined) is false; 0 where it is true, even if it
/// is true everywhere.
Tensor masked_softmax(const Tensor& scores, const Tensor& masked);

/// Aligns position scores with their keys: by_distance [..., T, S + T] over the distances S, S - 1, ..., 1 - T becomes
/// [..., T, S]; query t and key s have the element T - t + s. `keys` int64 [S]: 0, 1, 2, ... Source: Dai et al.
/// 2019, appendix B (arXiv 1901.02860).
Tensor relative_shift(const Tensor& by_distance, const Tensor& keys);

/// The factors, 0 or 1 / (1 - p), that a dropout applies to a tensor of `sizes`; fp32, the same on every device.
Tensor dropout_mask(at::IntArrayRef sizes, const Dropout& drop, at::Device device);

Tensor linear(const Tensor& x, const Param& w, const Param& b);
Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation activation,
                         const Dropout& drop = {});
Tensor activation(const Tensor& x, Activation activation);
Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table);
Tensor layer_norm(const Tensor& x, const NormParams& norm);
Tensor dropout(const Tensor& x, const Dropout& drop);
MemoryState memory_cell(const Tensor& gates, const Tensor& cell);
Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first = nullptr);
Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first = nullptr);
Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop);
Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop);
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop);
Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features);
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop);
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, int64_t* correct, TokenDraw* draw = nullptr);
Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw);
Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels);
Tensor take_rows(const Tensor& x, const Tensor& index);

}  // namespace cloze::plain
