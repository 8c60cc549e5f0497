#include "models/attention/window.h"

#include <cmath>

#include "core/error.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Longformer: sliding-window attention, and a few global tokens that attend to all tokens and are attended to by all.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150). A query that attends to a global token uses the
/// ordinary projections; the query of a global token uses projections of its own.
struct WindowAttentionLayer final : Attention {
  WindowAttentionLayer(const WindowAttention& kind, const AttentionSizes& c, int64_t layer)
      : Attention(c),
        window(of_layer(kind.attention_window, layer) / 2),
        dilation(of_layer(kind.attention_dilation, layer)),
        dilated_heads(kind.dilated_heads),
        first_is_global(kind.global_tokens == GlobalTokens::first),
        query_global(own("query_global", std::make_shared<Linear>(c.hidden_size, c.heads_width(), c.attention_bias))),
        key_value_global(own("key_value_global",
                             std::make_shared<Linear>(c.hidden_size, 2 * c.heads_width(), c.attention_bias, 2))) {}

  Tensor mix(const Tensor& x, const AttentionContext& given, const Dropout& drop) override {
    auto context = given;
    context.window = window;
    context.dilation = dilation;
    context.dilated_heads = dilated_heads;
    auto local = linear_self_attention(x, qkv->weight, qkv->bias, heads, context, drop);  // [B, T, D]
    // In evaluation, a query that is padding has zeros, as in transformers, where a loss of spans reads its state.
    if (context.key_mask.defined() && !drop.active)
      local = local.masked_fill(context.key_mask.logical_not().unsqueeze(-1), 0.0);
    if (!context.global_mask.defined()) return local;
    const auto* unpadded = context.unpadded.get();
    const auto padded = [&](const Tensor& states) { return unpadded ? unpadded->pad(states) : states; };
    const auto all = mix_globals({.x = padded(x),
                                  .keys_and_values = padded(key_value_global->forward(x)),
                                  .globals = context.global_mask,
                                  .count = context.globals,
                                  .mask = unpadded ? unpadded->mask : context.key_mask},
                                 drop);  // [B, T, D]
    return unpadded ? at::where(unpadded->unpad(context.global_mask).unsqueeze(-1), unpadded->unpad(all), local)
                    : at::where(context.global_mask.unsqueeze(-1), all, local);
  }

  /// What the queries of global tokens read.
  struct GlobalInput {
    Tensor x, keys_and_values;  ///< [B, T, D], [B, T, 2 H C]
    Tensor globals;             ///< bool [B, T], true = a global token
    int64_t count;              ///< AttentionContext::globals
    Tensor mask;                ///< bool [B, T], true = a real token; undefined: all are
  };
  /// The heads of global tokens at their positions, zeros elsewhere: [B, T, H C].
  Tensor mix_globals(const GlobalInput& in, Dropout drop) const {
    const auto positions = marked_positions(in.globals, in.count).unsqueeze(-1);  // [B, G, 1]
    const auto tokens = at::gather(in.x, 1, positions.expand({-1, -1, in.x.size(-1)}));
    const auto queries = query_global->forward(tokens);
    drop.site ^= 0x20000;
    const auto mixed = queries.is_cuda()
                           ? cross_attention(queries, {}, in.keys_and_values, {}, heads, {.key_mask = in.mask}, drop)
                           : mixed_by_scores(queries, in, drop);  // [B, G, D]
    return at::zeros_like(in.keys_and_values.chunk(2, -1)[0]).scatter(1, positions.expand_as(mixed), mixed);
  }
  /// The same of the global tokens alone, [B, G, H C].
  Tensor mixed_by_scores(const Tensor& queries, const GlobalInput& in, const Dropout& drop) const {
    const auto q = heads_of(queries, heads);
    const auto kv = in.keys_and_values.chunk(2, -1);
    const auto scores = cloze::matmul(q, heads_of(kv[0], heads).transpose(-1, -2)).to(at::kFloat) /
                        std::sqrt(static_cast<double>(q.size(-1)));  // [B, H, G, T]
    const auto visible = in.mask.defined() ? in.mask.unsqueeze(1).unsqueeze(1) : Tensor();
    const auto probabilities = dropout(visible_softmax(scores, visible).contiguous(), drop).to(in.x.scalar_type());
    return join_heads(cloze::matmul(probabilities, heads_of(kv[1], heads)));
  }

  /// With the global tokens of the config.
  double multiply_adds(const RowSizes& row, bool) const override {
    const auto all = static_cast<double>(heads);
    double dilated = 0;
    if (dilation > 1) dilated = dilated_heads == 0 ? all : std::min(all, static_cast<double>(dilated_heads));
    const double pairs = dilated * pairs_of_head(row.length, static_cast<double>(dilation)) +
                         (all - dilated) * pairs_of_head(row.length, 1);
    const double local = row.length * qkv->multiply_adds() + 2 * pairs * width() / all;
    if (!first_is_global) return local;
    return local + query_global->multiply_adds() + row.length * key_value_global->multiply_adds();
  }

  /// Pairs of a query and a key in its window. Each residue of the positions is a sequence with an ordinary window.
  double pairs_of_head(double length, double step) const {
    const double shorter = std::floor(length / step), longer = length - shorter * step;  // length, and number of longer
    const auto reach = static_cast<double>(window);
    const auto sequence = [&](double tokens) { return tokens + 2 * pairs_within(tokens, reach); };
    const double pairs = longer * sequence(shorter + 1) + (step - longer) * sequence(shorter);
    if (!first_is_global) return pairs;
    // The global token and the tokens outside its window attend to each other too.
    const double near = std::min(reach, (longer > 0 ? shorter + 1 : shorter) - 1);
    return pairs + 2 * (length - 1 - near);
  }

  int64_t window, dilation, dilated_heads;
  bool first_is_global;
  std::shared_ptr<Linear> query_global, key_value_global;
};

}  // namespace

std::shared_ptr<Attention> WindowAttention::make(const AttentionSizes& sizes, int64_t layer, PositionScheme&) const {
  return std::make_shared<WindowAttentionLayer>(*this, sizes, layer);
}

}  // namespace cloze
