#pragma once
// What is trained of a matrix that is base: products of two thin matrices, which the operators of linear layers add.
#include "core/kernels/kernels.h"
#include "core/tensor/ops.h"

namespace cloze {

/// W + scale B A in rows of a matrix W [N, K]. Source: Hu et al. 2021, equation 3 (arXiv 2106.09685).
struct LowRank {
  Param a;            ///< [R, K]
  Param b;            ///< [rows, R]
  int64_t first = 0;  ///< of the rows of W
  double scale = 1;
  Dropout drop{};  ///< of what A multiplies, in this pass

  int64_t rows() const { return b.value().size(0); }
};
struct LowRanks {
  std::vector<LowRank> parts;
};

/// Adds scale B A to W, for good.
void merge(const Param& w);

/// Products of rows, of the processor or of a GPU.
struct RowProducts {
  Tensor (*nt)(const Tensor& x, const Tensor& w);
  Tensor (*nn)(const Tensor& dy, const Tensor& w);
  void (*add_tn)(Tensor grad, const Tensor& dy, const Tensor& x);
  Tensor (*masked)(const Tensor& rows, const kernels::Dropout& drop);
};
/// y [M, N] += scale (x A') B', of x [M, K].
void add_low_rank(const LowRanks& of, const Tensor& x, const Tensor& y, const RowProducts& by);
/// The backward pass: adds the gradients of A and B, and that of x to dx.
void add_low_rank_backward(const LowRanks& of, const Tensor& dy, const Tensor& x, const Tensor& dx,
                           const RowProducts& by);

}  // namespace cloze
