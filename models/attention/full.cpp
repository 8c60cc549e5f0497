#include "core/error.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// What the layers of a stack with alternating attention differ in.
struct Reach {
  int64_t window;     ///< keys on either side that a query attends to; -1: all
  double rope_theta;  ///< of rotary positions
};

/// softmax(Q K' / sqrt(C)) V, over all keys or in a window; with rotary positions of rotated queries and keys.
struct FullAttentionLayer final : Attention {
  FullAttentionLayer(const AttentionSizes& c, const Reach& reach)
      : Attention(c), scale(c.scale_scores ? 0 : 1), window(reach.window) {
    if (c.position_embeddings == PositionEmbeddings::rotary) rotary.emplace(reach.rope_theta, c.head_width());
  }
  Tensor mix(const Tensor& x, const AttentionContext& given, const Dropout& drop) override {
    auto context = given;
    context.scale = scale, context.window = window;
    if (rotary)
      return self_attention(linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x)), Param(), heads, context, drop);
    return self_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context, drop);
  }
  Tensor mix_cached(const Tensor& x, Tensor& past, const AttentionContext& given) override {
    if (window >= 0) return Attention::mix_cached(x, past, given);
    auto context = given;
    context.scale = scale;
    const auto all = rotary ? linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x, past)) : qkv->forward(x);
    const auto parts = all.chunk(3, -1);
    const auto fresh = at::cat({parts[1], parts[2]}, -1);
    past = past.defined() ? at::cat({past, fresh}, 1) : fresh;
    return cached_attention(parts[0], past, heads, context);
  }
  double multiply_adds(const RowSizes& row, bool causal) const override {
    const double pairs = window < 0 ? attended_pairs(row, causal)
                                    : row.length + 2 * pairs_within(row.length, static_cast<double>(window));
    return row.length * qkv->multiply_adds() + 2 * pairs * width();
  }
  double scale;  // 0: 1 / sqrt(C)
  int64_t window;
  std::optional<RotaryTable> rotary;
};

struct Make {
  const AttentionSizes& config;
  int64_t layer;
  std::shared_ptr<Attention> operator()(const FullAttention&) const {
    if (config.relative_positions > 0 || config.has_relative_keys()) return make_relative_attention(config);
    return std::make_shared<FullAttentionLayer>(config, Reach{-1, config.rope_theta});
  }
  std::shared_ptr<Attention> operator()(const WindowAttention& kind) const {
    return make_window_attention(kind, config, layer);
  }
  std::shared_ptr<Attention> operator()(const AlternatingAttention& kind) const {
    const auto reach =
        kind.is_global(layer) ? Reach{-1, kind.global_rope_theta} : Reach{kind.window(), kind.local_rope_theta};
    return std::make_shared<FullAttentionLayer>(config, reach);
  }
  std::shared_ptr<Attention> operator()(const PerformerAttention& kind) const {
    return make_performer_attention(kind, config);
  }
  std::shared_ptr<Attention> operator()(const LinformerAttention& kind) const {
    return make_linformer_attention(kind, config);
  }
  std::shared_ptr<Attention> operator()(const BigBirdAttention& kind) const {
    return make_bigbird_attention(kind, config, layer);
  }
};

}  // namespace

Tensor Attention::mix_cached(const Tensor&, Tensor&, const AttentionContext&) {
  fail<ConfigError>(
      "this model's attention has no key-value cache, so it generates no text; train one with model.attention.kind: "
      "full, model.relative_positions: 0 and a position table");
}

CrossAttention::CrossAttention(const AttentionSizes& c)
    : heads(c.num_attention_heads),
      scale(c.scale_scores ? 0 : 1),
      output(own("output", std::make_shared<Linear>(c.heads_width(), c.hidden_size, c.attention_bias))),
      query(own("query", std::make_shared<Linear>(c.hidden_size, c.heads_width(), c.attention_bias))),
      key_value(own("key_value", std::make_shared<Linear>(c.hidden_size, 2 * c.heads_width(), c.attention_bias, 2))) {}

Tensor CrossAttention::mix(const Tensor& x, const EncoderOutput& encoded, const Tensor& cached,
                           const AttentionContext& context, const Dropout& drop) const {
  const AttentionContext cross{.key_mask = encoded.mask, .scale = scale, .probabilities = context.probabilities};
  if (cached.defined()) {
    const auto q = query->forward(x);
    if (cached.size(0) == q.size(0)) return cached_attention(q, cached, heads, cross);
    require<ShapeError>(q.size(0) % cached.size(0) == 0, "the ", q.size(0),
                        " rows of the decoder are not a multiple of the ", cached.size(0), " rows of the encoder");
    return cached_attention(q.view({cached.size(0), -1, q.size(2)}), cached, heads, cross)
        .reshape({x.size(0), x.size(1), -1});  // the queries of rows with the same source, concatenated
  }
  return cross_attention(linear(x, query->weight, Param()), query->bias,
                         linear(encoded.states, key_value->weight, Param()), key_value->bias, heads, cross, drop);
}

std::shared_ptr<Attention> make_attention(const AttentionSizes& config, int64_t layer) {
  require<ConfigError>(config.d_kv > 0 || config.hidden_size % config.num_attention_heads == 0, "hidden_size ",
                       config.hidden_size, " is not a multiple of num_attention_heads ", config.num_attention_heads,
                       "; choose a width that the heads divide");
  const bool full = std::holds_alternative<FullAttention>(config.attention) && config.relative_positions == 0;
  const bool rotary = config.position_embeddings == PositionEmbeddings::rotary;
  require<ConfigError>(!rotary || full || std::holds_alternative<AlternatingAttention>(config.attention),
                       "position_embeddings rotary needs attention of kind full or alternating without relative "
                       "positions; choose one of those");
  require<ConfigError>(!rotary || config.head_width() % 2 == 0, "heads of width ", config.head_width(),
                       " are odd, and rotary positions rotate pairs; choose an even width");
  return std::visit(Make{config, layer}, config.attention);
}

}  // namespace cloze
