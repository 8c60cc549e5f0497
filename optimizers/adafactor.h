#pragma once
#include <algorithm>

#include "optimizers/rule.h"

namespace cloze {

/// Source: Shazeer and Stern 2018, algorithms 4 and 5 (arXiv 1804.04235), without a first moment, as in Mesh
/// TensorFlow's T5. Differs: weight decay is decoupled; a tensor of three axes is treated as a matrix with its last
/// axis as columns (there the two longest axes are factored).
struct Adafactor {
  static constexpr const char* kind = "adafactor";
  static constexpr const char* words =
      "factored second moments (rows and columns), which decay by 1 - t^-0.8, no first moment, steps in proportion to "
      "the weights";
  static constexpr int64_t min_factored_size = 128;

  /// The second moments of a matrix are means of its rows and columns.
  static bool factors(const MatrixShape& shape) { return std::min(shape.rows, shape.columns) >= min_factored_size; }
  static std::vector<Moment> moments(const MatrixShape& shape) {
    if (!factors(shape)) return {{"exp_avg_sq", Extent::elements}};
    return {{"exp_avg_sq_row", Extent::rows}, {"exp_avg_sq_col", Extent::columns}};
  }
  void update(const optimizers::Step& step, const optimizers::Target& target) const;
  void update(const optimizers::Step& step, const optimizers::Buffers& buffers) const;
  void update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const;
};
template <class V>
void describe(V&, Adafactor&) {}

}  // namespace cloze
