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

/// True where attention with a scale, distance biases or a window makes its scores, false where one operator of
/// LibTorch does all of it. It makes them in a training, so that both runs of a recomputed layer are the same, and
/// where gradients are recorded: with biases that need some, the operator falls back to a softmax whose backward pass
/// differs in the last bits between numbers of threads. q stands for k and v, which are of one projection; tracing
/// records nothing.
bool goes_by_scores(const Tensor& q, const Dropout& drop);

/// bool [B or 1, 1, T or 1, S], true = may be attended to; undefined if every query attends to every key.
Tensor attention_mask(const Heads& heads, const AttentionContext& context);
/// The distance biases of the context, [H, T, S] in the dtype of the heads, or undefined.
Tensor pair_bias(const Heads& heads, const AttentionContext& context);
/// The factor of Q K'.
double scale_of(const Heads& heads, const AttentionContext& context);

/// softmax(Q K' scale + bias) under the masks of the context: [B, H, T, S].
Tensor probabilities_of(const Heads& heads, const AttentionContext& context);

/// Attention in a window of `context`, with its global keys and its dilation: [B, T, D].
Tensor window_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                        const Dropout& drop);

}  // namespace cloze::plain
