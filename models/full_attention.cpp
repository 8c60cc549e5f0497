#include "core/error.h"
#include "models/attention.h"

namespace cloze {

namespace {

/// softmax(Q K' / sqrt(C)) V. One product makes queries, keys and values: rows of `qkv.weight` are Q, then K, then V.
struct FullAttentionLayer final : Attention {
  explicit FullAttentionLayer(const StackConfig& c) : Attention(c.hidden_size), heads(c.num_attention_heads), qkv(own("qkv", std::make_shared<Linear>(c.hidden_size, 3 * c.hidden_size))) {}
  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    return self_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context, drop);
  }
  int64_t heads;
  std::shared_ptr<Linear> qkv;
};

struct Make {
  const StackConfig& config;
  int64_t layer;
  std::shared_ptr<Attention> operator()(const FullAttention&) const {
    if (config.relative_positions > 0) return make_relative_attention(config);
    return std::make_shared<FullAttentionLayer>(config);
  }
  std::shared_ptr<Attention> operator()(const WindowAttention& kind) const { return make_window_attention(kind, config, layer); }
  std::shared_ptr<Attention> operator()(const PerformerAttention& kind) const { return make_performer_attention(kind, config); }
  std::shared_ptr<Attention> operator()(const LinformerAttention& kind) const { return make_linformer_attention(kind, config); }
  std::shared_ptr<Attention> operator()(const BigBirdAttention& kind) const { return make_bigbird_attention(kind, config, layer); }
};

}  // namespace

std::shared_ptr<Attention> make_attention(const StackConfig& config, int64_t layer) {
  require<ConfigError>(config.hidden_size % config.num_attention_heads == 0, "hidden_size ", config.hidden_size, " is not a multiple of num_attention_heads ", config.num_attention_heads,
                       "; choose a width that the heads divide");
  return std::visit(Make{config, layer}, config.attention);
}

}  // namespace cloze
