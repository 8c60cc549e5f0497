#pragma once
// Attention kinds: who scores whom, and how. A kind that cannot honour a fact of the context throws ShapeError.
#include "models/config.h"
#include "models/layers.h"

namespace cloze {

/// Mixing of values by scores; the output projection belongs to it, but the block applies it together with what follows.
struct Attention : Layer {
  explicit Attention(int64_t width) : output(own("output", std::make_shared<Linear>(width, width))) {}
  /// x [B, T, D]; returns the heads' values side by side [B, T, D], before the output projection.
  virtual Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) = 0;
  std::shared_ptr<Linear> output;
};

/// The attention of layer number `layer`. Throws ConfigError.
std::shared_ptr<Attention> make_attention(const StackConfig& config, int64_t layer);
std::shared_ptr<Attention> make_relative_attention(const StackConfig& config);
std::shared_ptr<Attention> make_window_attention(const WindowAttention& kind, const StackConfig& config, int64_t layer);
std::shared_ptr<Attention> make_performer_attention(const PerformerAttention& kind, const StackConfig& config);
std::shared_ptr<Attention> make_linformer_attention(const LinformerAttention& kind, const StackConfig& config);
std::shared_ptr<Attention> make_bigbird_attention(const BigBirdAttention& kind, const StackConfig& config, int64_t layer);

/// Queries, keys and values of x, each [B, H, T, C]; one product makes them, its rows are Q, then K, then V.
struct SplitHeads {
  Tensor q, k, v;
};
inline SplitHeads split_heads(const Tensor& qkv, int64_t heads) {
  const auto parts = qkv.unflatten(-1, {3, heads, qkv.size(-1) / 3 / heads}).permute({2, 0, 3, 1, 4});   // [3, B, H, T, C]
  return {parts.select(0, 0), parts.select(0, 1), parts.select(0, 2)};
}
/// [B, H, T, C] to [B, T, D].
inline Tensor join_heads(const Tensor& mixed) { return mixed.transpose(1, 2).flatten(2); }

}  // namespace cloze
