#pragma once
// Attention kinds: who scores whom, and how. A kind that cannot honour a fact of the context throws ShapeError.
#include "core/tensor/plain.h"
#include "models/attention/config.h"
#include "models/layers/layers.h"

namespace cloze {

/// Mixing of values by scores. One product makes queries, keys and values: rows of `qkv.weight` are Q, then K, then V.
/// The output projection belongs to it, but the block applies it together with what follows.
struct Attention : Layer {
  explicit Attention(const AttentionSizes& c)
      : heads(c.num_attention_heads),
        output(own("output", std::make_shared<Linear>(c.heads_width(), c.hidden_size, c.linear_bias))),
        qkv(own("qkv", std::make_shared<Linear>(c.hidden_size, 3 * c.heads_width(), c.linear_bias, 3))) {}
  /// x [B, T, D]; returns the heads' values side by side [B, T, H C], before the output projection.
  virtual Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) = 0;
  /// The same for tokens that follow others: `past` [B, S, 2 H C] holds the keys and values of those, and receives the
  /// new ones. Throws ConfigError for attention that keeps none.
  virtual Tensor mix_after(const Tensor& x, Tensor& past, const AttentionContext& context);
  int64_t heads;
  std::shared_ptr<Linear> output, qkv;
};

/// What a decoder reads beside its own tokens.
struct Memory {
  Tensor states;  ///< [B, S, D]
  Tensor mask{};  ///< bool [B, S], true = a real token; undefined: all are
};

/// Attention of a decoder over an encoder's states.
/// Source: Vaswani et al. 2017, section 3.2.3.
struct CrossAttention : Layer {
  explicit CrossAttention(const AttentionSizes& c);
  /// Keys and values of the memory [B, S, 2 H C].
  Tensor keys_and_values(const Memory& memory) const { return key_value->forward(memory.states); }
  /// x [B, T, D]; returns [B, T, H C], before the output projection. `known`: keys_and_values, where they were computed
  /// before; its rows may be fewer, each read by equally many rows of x, one after the other.
  Tensor mix(const Tensor& x, const Memory& memory, const Tensor& known, const AttentionContext& context,
             const Dropout& drop) const;
  int64_t heads;
  double scale;
  std::shared_ptr<Linear> output, query, key_value;
};

/// The attention of layer number `layer`. Throws ConfigError.
std::shared_ptr<Attention> make_attention(const AttentionSizes& config, int64_t layer);
std::shared_ptr<Attention> make_relative_attention(const AttentionSizes& config);
std::shared_ptr<Attention> make_window_attention(const WindowAttention& kind, const AttentionSizes& config,
                                                 int64_t layer);
std::shared_ptr<Attention> make_performer_attention(const PerformerAttention& kind, const AttentionSizes& config);
std::shared_ptr<Attention> make_linformer_attention(const LinformerAttention& kind, const AttentionSizes& config);
std::shared_ptr<Attention> make_bigbird_attention(const BigBirdAttention& kind, const AttentionSizes& config,
                                                  int64_t layer);

/// 0, 1, 2, ... along axis 1 of x [B, T, ...], int64 [T]. No size is read, so that a trace runs at other lengths.
inline Tensor places(const Tensor& x) {
  return at::ones_like(x.dim() > 2 ? x.select(-1, 0).select(0, 0) : x.select(0, 0), at::kLong).cumsum(0) - 1;
}

using plain::heads_of;
using plain::masked_softmax;
/// [B, H, T, C] to [B, T, H C].
inline Tensor join_heads(const Tensor& mixed) { return mixed.transpose(1, 2).flatten(2); }

/// Queries, keys and values of x, each [B, H, T, C].
struct SplitHeads {
  Tensor q, k, v;
};
inline SplitHeads split_heads(const Tensor& qkv, int64_t heads) {
  const auto parts = qkv.chunk(3, -1);
  return {heads_of(parts[0], heads), heads_of(parts[1], heads), heads_of(parts[2], heads)};
}

/// The type in which scores of `x` are summed.
inline at::ScalarType wide_type(const Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace cloze
