#pragma once
// Angles of rotary position embeddings.
#include "core/tensor/unpadded_rows.h"

namespace cloze {

/// Cosines and sines of position times theta^(-2 i / C), for i from 0 to C / 2 - 1.
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

}  // namespace cloze
