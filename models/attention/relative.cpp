#include <cmath>

#include "core/tensor/plain.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Full attention with a vector for each distance, added to keys and to values: heads share them, layers do not.
/// Source: Shaw et al. 2018, equations 3 to 5 (arXiv 1803.02155).
struct RelativeAttentionLayer final : Attention {
  explicit RelativeAttentionLayer(const AttentionSizes& c)
      : Attention(c),
        reach(c.relative_positions),
        distance_key(own_param("distance_key", {2 * reach + 1, c.head_width()}, Init::weight)),
        distance_value(own_param("distance_value", {2 * reach + 1, c.head_width()}, Init::weight)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);
    const auto place = places(x);
    const auto apart = place.unsqueeze(0) - place.unsqueeze(1);   // [T, S]: key minus query
    const auto content = matrix_product(q, k.transpose(-1, -2));  // [B, H, T, S]
    const auto row = (apart.clamp(-reach, reach) + reach).expand_as(content);
    const auto by_distance = matrix_product(q, plain::weight(distance_key, x.scalar_type()).t());  // [B, H, T, 2 k + 1]
    const auto scores =
        (content + at::gather(by_distance, -1, row)).to(wide_type(x)) / std::sqrt(static_cast<double>(q.size(-1)));
    Tensor hidden;
    if (context.key_mask.defined()) hidden = context.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
    if (context.causal) hidden = hidden.defined() ? hidden.logical_or(apart.gt(0)) : apart.gt(0);
    const auto probabilities = dropout(masked_softmax(scores, hidden), drop).to(x.scalar_type());
    const auto mass = at::zeros_like(by_distance).scatter_add(-1, row, probabilities);  // [B, H, T, 2 k + 1]
    return join_heads(matrix_product(probabilities, v) +
                      matrix_product(mass, plain::weight(distance_value, x.scalar_type())));
  }

  int64_t reach;
  Param distance_key, distance_value;  // [2 k + 1, C]: distances -k ... k
};

/// Full attention with a vector for each distance, which is multiplied with the query and added to the score; in
/// relative_key_query with the key too. Heads share the vectors, layers do not. Source: Shaw et al. 2018, equation 5
/// (arXiv 1803.02155); Huang et al. 2020, method 4 (arXiv 2009.13658); BertSelfAttention of transformers 4.
struct DistanceAttentionLayer final : Attention {
  explicit DistanceAttentionLayer(const AttentionSizes& c)
      : Attention(c),
        reach(c.max_position_embeddings - 1),
        of_keys(c.position_embeddings == PositionEmbeddings::relative_key_query),
        distance(own_param("distance", {2 * reach + 1, c.head_width()}, Init::weight)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);
    const auto place = places(x);
    const auto apart = place.unsqueeze(1) - place.unsqueeze(0);  // [T, S]: query minus key
    auto scores = matrix_product(q, k.transpose(-1, -2));        // [B, H, T, S]
    const auto row = (apart + reach).expand_as(scores);
    const auto table = plain::weight(distance, x.scalar_type()).t();  // [C, 2 reach + 1]
    scores = scores + at::gather(matrix_product(q, table), -1, row);
    if (of_keys) scores = scores + at::gather(matrix_product(k, table), -1, row.transpose(-1, -2)).transpose(-1, -2);
    scores = scores.to(wide_type(x)) / std::sqrt(static_cast<double>(q.size(-1)));
    Tensor hidden;
    if (context.key_mask.defined()) hidden = context.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
    if (context.causal) hidden = hidden.defined() ? hidden.logical_or(apart.lt(0)) : apart.lt(0);
    const auto probabilities = masked_softmax(scores, hidden);
    if (context.probabilities) context.probabilities->push_back(probabilities);
    return join_heads(matrix_product(dropout(probabilities, drop).to(x.scalar_type()), v));
  }

  int64_t reach;
  bool of_keys;
  Param distance;  // [2 reach + 1, C]: distances -reach ... reach
};

}  // namespace

std::shared_ptr<Attention> make_relative_attention(const AttentionSizes& config) {
  if (config.scores_distances()) return std::make_shared<DistanceAttentionLayer>(config);
  return std::make_shared<RelativeAttentionLayer>(config);
}

}  // namespace cloze
