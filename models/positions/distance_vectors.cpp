#include "core/tensor/plain.h"
#include "models/positions/scheme.h"

namespace cloze {

namespace {

/// Key minus query of q [B, H, T, C] and as many keys: int64 [T, T].
Tensor distances_of(const Tensor& q) {
  const auto positions = position_range(q.select(1, 0));
  return positions.unsqueeze(0) - positions.unsqueeze(1);
}

/// Vectors of distances that are added to keys and values; heads share them, layers do not.
struct ShawTerms final : DistanceTerms {
  ShawTerms(const ShawVectors& kind, const PositionSizes& sizes, Layer& attention)
      : max_distance(kind.max_distance),
        key(attention.own_param("distance_key", {2 * max_distance + 1, sizes.head_width}, Init::weight)),
        value(attention.own_param("distance_value", {2 * max_distance + 1, sizes.head_width}, Init::weight)) {}

  Tensor added_to_scores(const Tensor& products, const Tensor& q, const Tensor&) const override {
    const auto by_distance = cloze::matmul(q, plain::weight(key, q.scalar_type()).t());  // [B, H, T, 2 k + 1]
    return add_by_distance(products, by_distance);
  }
  Tensor added_to_values(const Tensor& mixed, const Tensor& probabilities) const override {
    const auto mass = sum_by_distance(probabilities, max_distance);  // [B, H, T, 2 k + 1]
    return mixed + cloze::matmul(mass, plain::weight(value, mixed.scalar_type()));
  }
  /// A query is multiplied with the vector of each distance that it has keys at, and so is their probability.
  double products(const RowSizes& row, bool causal) const override {
    return 2 * (row.length + (causal ? 1 : 2) * pairs_within(row.length, static_cast<double>(max_distance)));
  }

  int64_t max_distance;
  Param key, value;  // [2 k + 1, C]: distances -k ... k, k = max_distance
};

/// Vectors of distances whose products with queries, and with keys too if `with_keys`, are added to the scores; heads
/// share them, layers do not. As BertSelfAttention of transformers 4.
struct RelativeKeyTerms final : DistanceTerms {
  RelativeKeyTerms(const RelativeKeys& kind, const PositionSizes& sizes, Layer& attention)
      : max_distance(sizes.max_positions - 1),
        with_keys(kind.with_keys),
        vectors(attention.own_param("distance", {2 * max_distance + 1, sizes.head_width}, Init::weight)) {}

  Tensor added_to_scores(const Tensor& products, const Tensor& q, const Tensor& k) const override {
    const auto row = (max_distance - distances_of(q)).expand_as(products);
    const auto table = plain::weight(vectors, q.scalar_type()).t();  // [C, 2 max_distance + 1]
    const auto scores = products + at::gather(cloze::matmul(q, table), -1, row);
    if (!with_keys) return scores;
    return scores + at::gather(cloze::matmul(k, table), -1, row.transpose(-1, -2)).transpose(-1, -2);
  }
  /// The distance of each pair of a query and a key is multiplied with the query, and with the key too if it is scored.
  double products(const RowSizes& row, bool causal) const override {
    return (with_keys ? 2 : 1) * attended_pairs(row, causal);
  }

  int64_t max_distance;
  bool with_keys;
  Param vectors;  // [2 max_distance + 1, C]: distances -max_distance ... max_distance, query minus key
};

/// A stack whose layers have terms of this kind.
template <class Terms, class Kind>
struct TermsScheme final : PositionScheme {
  TermsScheme(const Kind& of_config, const PositionSizes& of_stack) : kind(of_config), sizes(of_stack) {}
  std::shared_ptr<const DistanceTerms> terms(Layer& attention) const override {
    return std::make_shared<Terms>(kind, sizes, attention);
  }
  Kind kind;
  PositionSizes sizes;
};

}  // namespace

std::shared_ptr<PositionScheme> make_scheme(const ShawVectors& kind, const PositionSizes& sizes, Layer&) {
  return std::make_shared<TermsScheme<ShawTerms, ShawVectors>>(kind, sizes);
}
std::shared_ptr<PositionScheme> make_scheme(const RelativeKeys& kind, const PositionSizes& sizes, Layer&) {
  return std::make_shared<TermsScheme<RelativeKeyTerms, RelativeKeys>>(kind, sizes);
}

}  // namespace cloze
