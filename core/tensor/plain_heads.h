#pragma once
// Queries, keys and values by heads, which the plain forms of attention share.
#include "core/tensor/plain.h"

namespace cloze::plain {

struct Heads {
  Tensor q, k, v;  // [B, H, T | S, C]
};

inline Tensor with_bias(const Tensor& x, const Param& bias) {
  return bias.defined() ? x + weight(bias, x.scalar_type()) : x;
}

/// The heads of a projection [B, T, 3 D] of one input.
Heads split_heads(const Tensor& qkv, const Param& bias, int64_t heads);

/// 0, 1, 2, ... along axis 2 of x [B, H, T, C].
Tensor positions_of(const Tensor& x);

/// Operations on x are recorded for a backward pass. Tracing is not recording.
bool is_recorded(const Tensor& x);

/// softmax(Q K' scale + bias) under the masks of the context: [B, H, T, S].
Tensor probabilities_of(const Heads& heads, const AttentionContext& context);

/// Attention in a window of `context`, with its global keys and its dilation: [B, T, D].
Tensor window_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                        const Dropout& drop);

}  // namespace cloze::plain
