#include "core/error.h"
#include "models/attention.h"

namespace cloze {

namespace {

/// softmax(Q K' / sqrt(C)) V. One product makes queries, keys and values: rows of `qkv.weight` are Q, then K, then V.
struct FullAttentionLayer final : Attention {
  FullAttentionLayer(int64_t width, int64_t num_heads)
      : Attention(width), heads(num_heads), qkv(own("qkv", std::make_shared<Linear>(width, 3 * width))) {}
  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    return self_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context, drop);
  }
  int64_t heads;
  std::shared_ptr<Linear> qkv;
};

}  // namespace

std::shared_ptr<Attention> make_attention(const AttentionConfig& config, int64_t width, int64_t heads, int64_t layer) {
  require<ConfigError>(width % heads == 0, "hidden_size ", width, " is not a multiple of num_attention_heads ", heads,
                       "; choose a width that the heads divide");
  if (const auto* window = std::get_if<WindowAttention>(&config)) return make_window_attention(*window, width, heads, layer);
  return std::make_shared<FullAttentionLayer>(width, heads);
}

}  // namespace cloze
