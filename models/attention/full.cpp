#include "models/attention/full.h"

#include <cmath>
#include <limits>

#include "models/attention/attention.h"

namespace cloze {

namespace {

/// softmax(Q K' / sqrt(C)) V, over all keys or in a window, with what the positions of the stack are to it: rotated
/// queries and keys, or terms of distances.
struct FullAttentionLayer final : Attention {
  FullAttentionLayer(const AttentionSizes& c, const AttentionReach& reach, PositionScheme& positions)
      : Attention(c),
        scale(c.scale_scores ? 0 : 1),
        window(reach.window),
        rotary(positions.rotary(reach.rope_theta)),
        terms(positions.terms(*this)) {}
  Tensor mix(const Tensor& x, const AttentionContext& given, const Dropout& drop) override {
    if (terms) return mix_with_terms(x, given, drop);
    auto context = given;
    context.scale = scale;
    context.window = window;
    if (rotary) {
      const auto rotated = linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x, context.unpadded.get()));
      if (context.projections) context.projections->push_back(rotated);
      const auto mixed = self_attention(rotated, Param(), heads, context, drop);
      const bool has_far_padding = window >= 0 && context.key_mask.defined() && !drop.active;
      return has_far_padding ? with_far_padding(mixed, rotated, context.key_mask) : mixed;
    }
    if (context.projections) context.projections->push_back(qkv->forward(x));
    return linear_self_attention(x, qkv->weight, qkv->bias, heads, context, drop);
  }
  /// In evaluation, a padded query with no real key in its window has the mean of all values, as in transformers, where
  /// a loss of spans reads its state. Other states do not depend on it.
  Tensor with_far_padding(const Tensor& mixed, const Tensor& qkv_rotated, const Tensor& key_mask) const {
    const auto near = at::max_pool1d(key_mask.to(at::kFloat).unsqueeze(1), 2 * window + 1, 1, window).squeeze(1).gt(0);
    return at::where(near.unsqueeze(-1), mixed, mean_value(qkv_rotated));  // [B, T, D]
  }
  /// With gradients, those of transformers: scores vanish beside the mask that is added to them, but not from the
  /// graph.
  Tensor mean_value(const Tensor& qkv_rotated) const {
    if (!at::GradMode::is_enabled()) return qkv_rotated.chunk(3, -1)[2].mean(1, /*keepdim=*/true);
    const auto [q, k, v] = split_heads(qkv_rotated, heads);
    const auto scores = cloze::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(-1)));
    return join_heads(cloze::matmul(at::softmax(scores + std::numeric_limits<float>::lowest(), -1), v));
  }
  /// The same in plain operators.
  Tensor mix_with_terms(const Tensor& x, const AttentionContext& context, const Dropout& drop) const {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);
    const auto scores = terms->added_to_scores(cloze::matmul(q, k.transpose(-1, -2)), q, k).to(accumulation_type(x)) /
                        std::sqrt(static_cast<double>(q.size(-1)));  // [B, H, T, T]
    Tensor visible;
    if (context.key_mask.defined()) visible = context.key_mask.unsqueeze(1).unsqueeze(1);
    if (context.causal) {
      const auto positions = position_range(x);
      const auto past = positions.unsqueeze(0).le(positions.unsqueeze(1));  // [T, T], true = not after the query
      visible = visible.defined() ? visible.logical_and(past) : past;
    }
    const auto probabilities = visible_softmax(scores, visible);
    if (context.probabilities) context.probabilities->push_back(probabilities);
    const auto taken = dropout(probabilities, drop).to(x.scalar_type());
    return join_heads(terms->added_to_values(cloze::matmul(taken, v), taken));
  }
  Tensor mix_cached(const Tensor& x, Tensor& past, const AttentionContext& given) override {
    if (!has_cache()) return Attention::mix_cached(x, past, given);
    auto context = given;
    context.scale = scale;
    const auto all = rotary ? linear_rotary(x, qkv->weight, qkv->bias, rotary->of(x, past)) : qkv->forward(x);
    const auto parts = all.chunk(3, -1);
    const auto fresh = at::cat({parts[1], parts[2]}, -1);
    past = past.defined() ? at::cat({past, fresh}, 1) : fresh;
    return cross_attention(parts[0], {}, past, {}, heads, context, {});
  }
  bool has_cache() const override { return window < 0 && !terms; }
  double multiply_adds(const RowSizes& row, bool causal) const override {
    const double pairs = window < 0 ? attended_pairs(row, causal)
                                    : row.length + 2 * pairs_within(row.length, static_cast<double>(window));
    const double of_terms = terms ? terms->products(row, causal) : 0;
    return row.length * qkv->multiply_adds() + (2 * pairs + of_terms) * width();
  }
  double scale;  // 0: 1 / sqrt(C)
  int64_t window;
  std::shared_ptr<const RotaryTable> rotary;
  std::shared_ptr<const DistanceTerms> terms;
};

}  // namespace

std::shared_ptr<Attention> make_full_attention(const AttentionSizes& config, const AttentionReach& reach,
                                               PositionScheme& positions) {
  return std::make_shared<FullAttentionLayer>(config, reach, positions);
}

std::shared_ptr<Attention> FullAttention::make(const AttentionSizes& sizes, int64_t, PositionScheme& positions) const {
  return make_full_attention(sizes, {}, positions);
}

}  // namespace cloze
