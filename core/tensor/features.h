#pragma once
// Random features that approximate kernels.
#include "core/random.h"
#include "core/tensor/param.h"

namespace cloze {

/// Fills w [R, C] with rows that are orthogonal in blocks of C, with the norms of rows of independent normal numbers.
/// Source: Choromanski et al. 2021, section 2.4 (arXiv 2009.14794).
void draw_features(const Tensor& w, Stream stream);

}  // namespace cloze
