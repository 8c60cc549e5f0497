#include "core/error.h"
#include "models/attention/attention.h"

namespace cloze {

CrossAttention::CrossAttention(const AttentionSizes& c)
    : heads(c.num_attention_heads),
      scale(c.scale_scores ? 0 : 1),
      output(own("output", std::make_shared<Linear>(c.heads_width(), c.hidden_size, c.attention_bias))),
      query(own("query", std::make_shared<Linear>(c.hidden_size, c.heads_width(), c.attention_bias))),
      key_value(own("key_value", std::make_shared<Linear>(c.hidden_size, 2 * c.heads_width(), c.attention_bias, 2))) {
  output->weight.set_projection(Projection::residual);
  query->weight.set_queries(c.head_width());
}

Tensor CrossAttention::mix(const Tensor& x, const EncoderOutput& encoded, const Tensor& cached,
                           const AttentionContext& context, const Dropout& drop) const {
  const AttentionContext cross{
      .key_mask = encoded.mask, .scale = scale, .probabilities = context.probabilities, .made = context.made};
  if (cached.defined()) {
    const auto q = query->forward(x);
    if (cached.size(0) == q.size(0)) return cross_attention(q, {}, cached, {}, heads, cross, {});
    require<ShapeError>(q.size(0) % cached.size(0) == 0, "the ", q.size(0),
                        " rows of the decoder are not a multiple of the ", cached.size(0), " rows of the encoder");
    return cross_attention(q.view({cached.size(0), -1, q.size(2)}), {}, cached, {}, heads, cross, {})
        .reshape({x.size(0), x.size(1), -1});  // the queries of rows with the same source, concatenated
  }
  return cross_attention(linear(x, query->weight, Param()), query->bias,
                         linear(encoded.states, key_value->weight, Param()), key_value->bias, heads, cross, drop);
}

}  // namespace cloze
