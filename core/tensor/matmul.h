#pragma once
// Matrix multiplications of linear layers: rows x [R, K], weights w [N, K], gradients dy [R, N]. bf16 runs on the
// kernels of core/kernels/gemm.h if the processor has AMX or AVX512-BF16, fp32 if it is not Intel's and has AVX2, with
// sums in fp32 that are the same for any number of threads; everything else on LibTorch, split into parts so that the
// same holds there. No graph is recorded: these are for hand-written forward and backward passes.
#include <ATen/ATen.h>

namespace cloze {

using at::Tensor;

/// x w' [R, N], plus `bias` [N] in fp32 if it is defined.
Tensor matmul_nt(const Tensor& x, const Tensor& w, const Tensor& bias = {});
/// x w' [..., N] for x [..., K] and a weight in oneDNN's layout (Param::packed), fp32: a row of the result has the same
/// bits whatever the other rows are.
Tensor matmul_packed(const Tensor& x, const Tensor& packed, const Tensor& bias = {});
/// dy w [R, K].
Tensor matmul_nn(const Tensor& dy, const Tensor& w);
/// grad += dy' x; returns dy w [R, K]: both at once.
Tensor matmul_backward(Tensor grad, const Tensor& dy, const Tensor& x, const Tensor& w);
/// grad += dy' x; grad fp32 [N, K].
void add_matmul_tn(Tensor grad, const Tensor& dy, const Tensor& x);
/// sum += dy w; sum fp32 [R, K].
void add_matmul_nn(Tensor sum, const Tensor& dy, const Tensor& w);
/// a b for each matrix of a [..., M, K] and b [..., K, N], leading axes broadcast; returns [..., M, N].
Tensor batched_matmul(const Tensor& a, const Tensor& b);

}  // namespace cloze
