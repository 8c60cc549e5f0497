#include <cmath>

#include "core/error.h"
#include "models/attention.h"

namespace cloze {

namespace {

/// Attention in a window, and over everything for a few tokens that everything sees: Longformer.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150). The edge from any token to a global one goes through the
/// projections of all tokens, the edge from a global token through those of its own.
struct WindowAttentionLayer final : Attention {
  WindowAttentionLayer(int64_t width, int64_t num_heads, int64_t one_sided, int64_t steps, int64_t stepping)
      : Attention(width),
        heads(num_heads),
        window(one_sided),
        dilation(steps),
        dilated_heads(stepping),
        qkv(own("qkv", std::make_shared<Linear>(width, 3 * width))),
        query_global(own("query_global", std::make_shared<Linear>(width, width))),
        key_value_global(own("key_value_global", std::make_shared<Linear>(width, 2 * width))) {}

  Tensor mix(const Tensor& x, const AttentionContext& given, const Dropout& drop) override {
    auto context = given;
    context.window = window, context.dilation = dilation, context.dilated_heads = dilated_heads;
    const auto local = self_attention(linear(x, qkv->weight, Param()), qkv->bias, heads, context, drop);   // [B, T, D]
    if (!context.global_mask.defined()) return local;
    const auto wide = marked_places(context.global_mask).unsqueeze(-1).expand({-1, -1, x.size(-1)});                                              // [B, G, D]
    const auto split = [&](const Tensor& t) { return t.unflatten(-1, {heads, t.size(-1) / heads}).transpose(1, 2); };   // [B, H, ., C]
    const auto q = split(query_global->forward(at::gather(x, 1, wide)));
    const auto kv = key_value_global->forward(x).chunk(2, -1);
    auto scores = at::matmul(q, split(kv[0]).transpose(-1, -2)).to(at::kFloat) / std::sqrt(static_cast<double>(q.size(-1)));   // [B, H, G, T]
    if (context.key_mask.defined()) scores = scores.masked_fill(context.key_mask.logical_not().unsqueeze(1).unsqueeze(1), -30000.0);
    Dropout beside = drop;
    beside.site ^= 0x20000;
    const auto probabilities = dropout(at::softmax(scores, -1).contiguous(), beside).to(x.scalar_type());
    const auto mixed = at::matmul(probabilities, split(kv[1])).transpose(1, 2).flatten(2);                            // [B, G, D]
    const auto rows = at::zeros_like(local).scatter(1, wide, mixed);
    return at::where(context.global_mask.unsqueeze(-1), rows, local);
  }

  int64_t heads, window, dilation, dilated_heads;
  std::shared_ptr<Linear> qkv, query_global, key_value_global;
};

}  // namespace

std::shared_ptr<Attention> make_window_attention(const WindowAttention& kind, const StackConfig& config, int64_t layer) {
  return std::make_shared<WindowAttentionLayer>(config.hidden_size, config.num_attention_heads, of_layer(windows_of(kind), layer) / 2, of_layer(dilations_of(kind), layer), kind.dilated_heads);
}

}  // namespace cloze
