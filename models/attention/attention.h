#pragma once
// The attention layers. One that does not support an option of the context throws ShapeError.
#include "core/tensor/plain.h"
#include "models/attention/sizes.h"
#include "models/layers/cost.h"
#include "models/layers/layers.h"
#include "models/positions/scheme.h"

namespace cloze {

/// Multi-head self-attention. Queries, keys and values come from one fused projection: rows of `qkv.weight` are Q, then
/// K, then V. The output projection belongs to the layer, but the block applies it, fused with dropout, residual and
/// norm.
struct Attention : Layer {
  explicit Attention(const AttentionSizes& c)
      : heads(c.num_attention_heads),
        output(own("output", std::make_shared<Linear>(c.heads_width(), c.hidden_size, c.attention_bias))),
        qkv(own("qkv", std::make_shared<Linear>(c.hidden_size, 3 * c.heads_width(), c.attention_bias, 3))) {
    output->weight.set_projection(Projection::residual);
    qkv->weight.set_queries(c.head_width());
  }
  /// x [B, T, D]; returns the concatenated heads [B, T, H C], before the output projection.
  virtual Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) = 0;
  /// The same with a key-value cache: `past` [B, S, 2 H C] holds the keys and values of earlier tokens, and those of x
  /// are appended. Throws ConfigError for attention without a cache.
  virtual Tensor mix_cached(const Tensor& x, Tensor& past, const AttentionContext& context);
  virtual bool has_cache() const { return false; }
  /// Multiply-adds of `mix` for one of these rows.
  virtual double multiply_adds(const RowSizes& row, bool causal) const = 0;
  /// Width of all heads together.
  double width() const { return static_cast<double>(output->weight.value().size(1)); }
  int64_t heads;
  std::shared_ptr<Linear> output, qkv;
};

/// The encoder's output, which a decoder attends to by cross-attention.
struct EncoderOutput {
  Tensor states;  ///< [B, S, D]
  Tensor mask{};  ///< bool [B, S], true = a real token; undefined: no padding
};

/// Cross-attention of a decoder over the encoder's output.
/// Source: Vaswani et al. 2017, section 3.2.3.
struct CrossAttention : Layer {
  explicit CrossAttention(const AttentionSizes& c);
  /// Keys and values of the encoder's output [B, S, 2 H C].
  Tensor keys_and_values(const EncoderOutput& encoded) const { return key_value->forward(encoded.states); }
  /// x [B, T, D]; returns [B, T, H C], before the output projection. `cached`: keys_and_values computed earlier;
  /// undefined: computed here. It may have fewer rows than x: each then serves the same number of consecutive rows of
  /// x.
  Tensor mix(const Tensor& x, const EncoderOutput& encoded, const Tensor& cached, const AttentionContext& context,
             const Dropout& drop) const;
  /// Multiply-adds of `mix` for one row.
  double multiply_adds(double queries, double keys) const {
    const auto width = static_cast<double>(output->weight.value().size(1));
    return queries * query->multiply_adds() + keys * key_value->multiply_adds() + 2 * queries * keys * width;
  }
  int64_t heads;
  double scale;
  std::shared_ptr<Linear> output, query, key_value;
};

/// The positions of a stack with this attention, whose parameters the stack owns.
inline std::shared_ptr<PositionScheme> make_positions(const AttentionSizes& c, bool causal, Layer& stack) {
  return make_positions(c.positions.relative,
                        {.heads = c.num_attention_heads,
                         .head_width = c.head_width(),
                         .max_positions = c.max_position_embeddings,
                         .causal = causal},
                        stack);
}
/// The attention of layer `layer`, from 0, in a stack with these positions. Throws ConfigError.
std::shared_ptr<Attention> make_attention(const AttentionSizes& config, int64_t layer, PositionScheme& positions);
/// What the layers of a stack with alternating attention differ in.
struct AttentionReach {
  int64_t window = -1;    ///< keys on either side that a query attends to; -1: all
  double rope_theta = 0;  ///< base of rotary positions; 0: that of the stack
};
/// Attention over all keys or in a window.
std::shared_ptr<Attention> make_full_attention(const AttentionSizes& config, const AttentionReach& reach,
                                               PositionScheme& positions);

using plain::heads_of;
using plain::visible_softmax;
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

}  // namespace cloze
