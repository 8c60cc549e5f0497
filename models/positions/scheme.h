#pragma once
// What positions do in the attention of a stack: made once, and asked by its layers.
#include <memory>

#include "core/tensor/param.h"
#include "core/tensor/unpadded_rows.h"
#include "models/layers/cost.h"
#include "models/positions/config.h"

namespace cloze {

/// Angles of rotary position embeddings: cosines and sines of position times theta^(-2 i / C), for i from 0 to
/// C / 2 - 1.
/// Source: Su et al. 2021, section 3.2.2 (arXiv 2104.09864).
class RotaryTable {
 public:
  RotaryTable(double theta, int64_t head_width);
  /// fp32 [T, C], cosines before sines, for the tokens of x [B, T, ...] that follow those of `past` [B, S, ...]
  /// (undefined: none).
  Tensor of(const Tensor& x, const Tensor& past = {}) const;
  /// The same for the tokens of unpadded rows; null: of x.
  Tensor of(const Tensor& x, const UnpaddedRows* unpadded) const;

 private:
  /// Rows [before, before + count) of the table.
  Tensor rows(int64_t before, int64_t count, const Tensor& like) const;
  Tensor angles(const Tensor& positions) const;  // fp32 [T, C / 2]
  Tensor frequencies_;                           // fp32 [C / 2]
  mutable Tensor table_;                         // [at least every length so far, C]
};

/// Terms of the distances of queries and keys in the full attention of one layer.
struct DistanceTerms {
  virtual ~DistanceTerms() = default;
  /// products [B, H, T, S] of queries q [B, H, T, C] and keys k [B, H, S, C], before they are scaled, and these terms.
  virtual Tensor added_to_scores(const Tensor& products, const Tensor& q, const Tensor& k) const = 0;
  /// mixed [B, H, T, C], the values by their probabilities [B, H, T, S], and these terms.
  virtual Tensor added_to_values(const Tensor& mixed, const Tensor& /*probabilities*/) const { return mixed; }
  /// Multiply-adds of both for one of these rows, in units of the width of all heads.
  virtual double products(const RowSizes& row, bool causal) const = 0;
};

/// The positions of a stack. The usual answers: they add nothing.
///
/// A parameter that layers share is one of the stack, which the scheme makes and hands to its terms; one of each layer
/// is made in `terms`. So a table of distances that all layers project (DeBERTa) is a Param of the scheme, and its
/// projections are those of `attention`.
struct PositionScheme {
  virtual ~PositionScheme() = default;
  /// [H, T + S - 1], element s - t + T - 1 is added to the score of query t and key s in every layer, for the tokens of
  /// x [B, T, D] after those in the key-value cache `past` [B, S - T, ...] (undefined: none). Undefined: nothing is
  /// added. Made once in a forward pass; its gradient reaches the scheme's parameters.
  virtual Tensor distance_bias(const Tensor& /*x*/, const Tensor& /*past*/) const { return {}; }
  /// The angles by which a layer rotates queries and keys, null: it rotates none. `theta`: a base of the layer's own,
  /// 0: the stack's.
  virtual std::shared_ptr<const RotaryTable> rotary(double /*theta*/) { return nullptr; }
  /// The terms of a layer with this attention, which owns their parameters; null: none.
  virtual std::shared_ptr<const DistanceTerms> terms(Layer& /*attention*/) const { return nullptr; }
};

/// What a scheme depends on.
struct PositionSizes {
  int64_t heads, head_width, max_positions;
  bool causal;  ///< of the stack
};
/// The scheme of a stack, which owns the parameters that its layers share.
std::shared_ptr<PositionScheme> make_positions(const RelativePositions& relative, const PositionSizes& sizes,
                                               Layer& stack);
/// Those of the kinds.
std::shared_ptr<PositionScheme> make_scheme(const NoRelativePositions& kind, const PositionSizes& sizes, Layer& stack);
std::shared_ptr<PositionScheme> make_scheme(const Rotary& kind, const PositionSizes& sizes, Layer& stack);
std::shared_ptr<PositionScheme> make_scheme(const RelativeKeys& kind, const PositionSizes& sizes, Layer& stack);
std::shared_ptr<PositionScheme> make_scheme(const ShawVectors& kind, const PositionSizes& sizes, Layer& stack);
std::shared_ptr<PositionScheme> make_scheme(const BucketBias& kind, const PositionSizes& sizes, Layer& stack);
std::shared_ptr<PositionScheme> make_scheme(const Alibi& kind, const PositionSizes& sizes, Layer& stack);

/// 0, 1, 2, ... along axis 1 of x [B, T, ...], int64 [T]. Reads no sizes, so that a trace generalises to other lengths.
inline Tensor position_range(const Tensor& x) {
  return at::ones_like(x.dim() > 2 ? x.select(-1, 0).select(0, 0) : x.select(0, 0), at::kLong).cumsum(0) - 1;
}
/// The distances of keys and the queries x [B, T, ...] after those in `past` [B, S - T, ...] (undefined: none), key
/// minus query: -(S - 1) ... T - 1, int64 [T + S - 1].
Tensor distance_range(const Tensor& x, const Tensor& past);

/// The type in which the attention scores of `x` are accumulated.
inline at::ScalarType accumulation_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace cloze
