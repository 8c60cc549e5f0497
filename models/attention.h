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

/// The attention of layer number `layer`.
std::shared_ptr<Attention> make_attention(const AttentionConfig& config, int64_t width, int64_t heads, int64_t layer);
std::shared_ptr<Attention> make_window_attention(const WindowAttention& config, int64_t width, int64_t heads, int64_t layer);

}  // namespace cloze
