#include "models/attention/attention.h"

namespace cloze {

namespace {

/// softmax(Q K' / sqrt(C)) V, over all keys or in a window; with rotary positions of rotated queries and keys.
struct FullAttentionLayer final : Attention {
  FullAttentionLayer(const AttentionSizes& c, const AttentionReach& reach)
      : Attention(c), scale(c.scale_scores ? 0 : 1), window(reach.window) {
    if (c.position_embeddings == PositionEmbeddings::rotary) rotary.emplace(reach.rope_theta, c.head_width());
  }
  Tensor mix(const Tensor& x, const AttentionContext& given, const Dropout& drop) override {
    auto context = given;
    context.scale = scale;
    context.window = window;
    if (rotary)
      return self_attention(linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x)), Param(), heads, context, drop);
    return self_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context, drop);
  }
  Tensor mix_cached(const Tensor& x, Tensor& past, const AttentionContext& given) override {
    if (!has_cache()) return Attention::mix_cached(x, past, given);
    auto context = given;
    context.scale = scale;
    const auto all = rotary ? linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x, past)) : qkv->forward(x);
    const auto parts = all.chunk(3, -1);
    const auto fresh = at::cat({parts[1], parts[2]}, -1);
    past = past.defined() ? at::cat({past, fresh}, 1) : fresh;
    return cached_attention(parts[0], past, heads, context);
  }
  bool has_cache() const override { return window < 0; }
  double multiply_adds(const RowSizes& row, bool causal) const override {
    const double pairs = window < 0 ? attended_pairs(row, causal)
                                    : row.length + 2 * pairs_within(row.length, static_cast<double>(window));
    return row.length * qkv->multiply_adds() + 2 * pairs * width();
  }
  double scale;  // 0: 1 / sqrt(C)
  int64_t window;
  std::optional<RotaryTable> rotary;
};

}  // namespace

std::shared_ptr<Attention> make_full_attention(const AttentionSizes& config, const AttentionReach& reach) {
  return std::make_shared<FullAttentionLayer>(config, reach);
}

}  // namespace cloze
