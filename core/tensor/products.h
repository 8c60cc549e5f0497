#pragma once
// Products of the matrices of linear maps: rows x [R, K], weights w [N, K], gradients dy [R, N]; on the units of products.h
// (core/kernels) where the processor has them and nothing better, else by LibTorch. Sums are fp32, and the same for any number of threads.
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

/// Off: LibTorch's products everywhere, for tests and comparisons.
void use_own_products(bool on);

}  // namespace cloze
