#include <cmath>

#include "core/tensor/plain.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Full attention with relative position embeddings added to keys and values; heads share them, layers do not.
/// Source: Shaw et al. 2018, equations 3 to 5 (arXiv 1803.02155).
struct RelativeAttentionLayer final : Attention {
  explicit RelativeAttentionLayer(const AttentionSizes& c)
      : Attention(c),
        max_distance(c.relative_positions),
        distance_key(own_param("distance_key", {2 * max_distance + 1, c.head_width()}, Init::weight)),
        distance_value(own_param("distance_value", {2 * max_distance + 1, c.head_width()}, Init::weight)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);
    const auto positions = position_range(x);
    const auto distances = positions.unsqueeze(0) - positions.unsqueeze(1);  // [T, S]: key minus query
    const auto content = cloze::matmul(q, k.transpose(-1, -2));              // [B, H, T, S]
    const auto row = (distances.clamp(-max_distance, max_distance) + max_distance).expand_as(content);
    const auto by_distance = cloze::matmul(q, plain::weight(distance_key, x.scalar_type()).t());  // [B, H, T, 2 k + 1]
    const auto scores = (content + at::gather(by_distance, -1, row)).to(accumulation_type(x)) /
                        std::sqrt(static_cast<double>(q.size(-1)));
    Tensor masked;
    if (context.key_mask.defined()) masked = context.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
    if (context.causal) masked = masked.defined() ? masked.logical_or(distances.gt(0)) : distances.gt(0);
    const auto probabilities = dropout(masked_softmax(scores, masked), drop).to(x.scalar_type());
    const auto mass = at::zeros_like(by_distance).scatter_add(-1, row, probabilities);  // [B, H, T, 2 k + 1]
    return join_heads(cloze::matmul(probabilities, v) +
                      cloze::matmul(mass, plain::weight(distance_value, x.scalar_type())));
  }

  /// A query is multiplied with the embedding of each distance that it has keys at, and so is their probability.
  double multiply_adds(const RowSizes& row, bool causal) const override {
    const double distances =
        row.length + (causal ? 1 : 2) * pairs_within(row.length, static_cast<double>(max_distance));
    return row.length * qkv->multiply_adds() + 2 * (attended_pairs(row, causal) + distances) * width();
  }

  int64_t max_distance;
  Param distance_key, distance_value;  // [2 k + 1, C]: distances -k ... k, k = max_distance
};

/// Full attention with relative position embeddings in the scores: q a' is added to q k', and in relative_key_query k
/// a' too. Heads share the embeddings, layers do not. Source: Shaw et al. 2018, equation 5 (arXiv 1803.02155); Huang et
/// al. 2020, method 4 (arXiv 2009.13658); BertSelfAttention of transformers 4.
struct RelativeKeyAttentionLayer final : Attention {
  explicit RelativeKeyAttentionLayer(const AttentionSizes& c)
      : Attention(c),
        max_distance(c.max_position_embeddings - 1),
        scores_keys(c.position_embeddings == PositionEmbeddings::relative_key_query),
        distance(own_param("distance", {2 * max_distance + 1, c.head_width()}, Init::weight)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);
    const auto positions = position_range(x);
    const auto distances = positions.unsqueeze(1) - positions.unsqueeze(0);  // [T, S]: query minus key
    auto scores = cloze::matmul(q, k.transpose(-1, -2));                     // [B, H, T, S]
    const auto row = (distances + max_distance).expand_as(scores);
    const auto table = plain::weight(distance, x.scalar_type()).t();  // [C, 2 max_distance + 1]
    scores = scores + at::gather(cloze::matmul(q, table), -1, row);
    if (scores_keys) scores = scores + at::gather(cloze::matmul(k, table), -1, row.transpose(-1, -2)).transpose(-1, -2);
    scores = scores.to(accumulation_type(x)) / std::sqrt(static_cast<double>(q.size(-1)));
    Tensor masked;
    if (context.key_mask.defined()) masked = context.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
    if (context.causal) masked = masked.defined() ? masked.logical_or(distances.lt(0)) : distances.lt(0);
    const auto probabilities = masked_softmax(scores, masked);
    if (context.probabilities) context.probabilities->push_back(probabilities);
    return join_heads(cloze::matmul(dropout(probabilities, drop).to(x.scalar_type()), v));
  }

  /// The distance of each pair of a query and a key is multiplied with the query, and with the key too if it is scored.
  double multiply_adds(const RowSizes& row, bool causal) const override {
    return row.length * qkv->multiply_adds() + (scores_keys ? 4 : 3) * attended_pairs(row, causal) * width();
  }

  int64_t max_distance;
  bool scores_keys;
  Param distance;  // [2 max_distance + 1, C]: distances -max_distance ... max_distance
};

}  // namespace

std::shared_ptr<Attention> make_relative_attention(const AttentionSizes& config) {
  if (config.has_relative_keys()) return std::make_shared<RelativeKeyAttentionLayer>(config);
  return std::make_shared<RelativeAttentionLayer>(config);
}

}  // namespace cloze
