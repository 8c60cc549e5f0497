#pragma once
// Products of the matrices of linear maps: rows x [R, K], weights w [N, K], gradients dy [R, N]; of bf16 on the units
// of core/kernels/products.h where the processor has them and nothing better, with sums in fp32 that are the same for
// any number of threads; else by LibTorch, in parts that make the same true there. No graph is recorded: these are for
// forward and backward passes written by hand.
#include <ATen/ATen.h>

namespace cloze {

using at::Tensor;

/// x w' [R, N], plus `bias` [N] in fp32 where it is given.
Tensor times_transposed(const Tensor& x, const Tensor& w, const Tensor& bias = {});
/// dy w [R, K].
Tensor times(const Tensor& dy, const Tensor& w);
/// grad += dy' x; grad fp32 [N, K].
void add_outer(Tensor grad, const Tensor& dy, const Tensor& x);
/// sum += dy w; sum fp32 [R, K].
void add_times(Tensor sum, const Tensor& dy, const Tensor& w);
/// a b for each matrix of a [..., M, K] and b [..., K, N], whose leading axes are broadcast; [..., M, N].
Tensor times_each(const Tensor& a, const Tensor& b);

}  // namespace cloze
