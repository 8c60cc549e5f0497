#pragma once
// Shared by the operators of a GPU: launches, products, sums of columns.
#include <c10/core/DeviceGuard.h>

#include "core/device/compiled.h"
#include "core/tensor/device.h"
#include "core/tensor/fused_support.h"

namespace cloze::device {

using fused::as_rows;
using fused::grad_of;
using fused::in_shape_of;
using fused::keep;
using fused::kept;
using fused::kept_dropout;
using fused::kernel_dropout;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t tile_width = 256;  // of kernels.cu
inline int64_t tiles_of(int64_t width) { return (width + tile_width - 1) / tile_width; }
/// Parts of rows whose columns are summed by a warp each.
inline int64_t chunks_of(int64_t rows) { return std::clamp<int64_t>(rows / 64, 1, 256); }

/// What a kernel is given of a tensor or parameter; null: it is undefined.
inline void* data(const Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }
inline void* data(const Param& param) { return param.defined() ? param.value().data_ptr() : nullptr; }
using fused::grad_data;
using fused::leaf_of;

/// CUstream of a device; null: it has none.
void* stream_of(at::Device device);

/// Launches a kernel of the element type and the device of `like`.
template <class... Arguments>
void run(const Tensor& like, const char* kernel, int64_t warps, Arguments... arguments) {
  const c10::DeviceGuard guard(like.device());
  launch({.stream = stream_of(like.device()),
          .bf16 = like.scalar_type() == at::kBFloat16,
          .kernel = kernel,
          .warps = warps},
         arguments...);
}

/// rows w' + b, [R, N].
Tensor multiplied(const Tensor& rows, const Param& w, const Param& b = {});
/// x W' + b, of which the caller adds the gradient of b.
Tensor linear_without_bias_gradient(const Tensor& x, const Param& w, const Param& b);
/// The backward pass of rows w': grad(w) += dy' x, where w has one; returns dy w.
Tensor multiplied_backward(const Param& w, const Tensor& dy, const Tensor& x);

/// fp32 [chunks, kinds, width] for the sums of columns of `like`.
Tensor partial_sums(const Tensor& like, int64_t chunks, int64_t kinds, int64_t width);
/// Adds them over chunks to the gradients of up to three parameters, of which any may be undefined.
void add_sums(const Tensor& partial, const Param& first, const Param& second = {}, const Param& third = {});
/// grad(b) += column sums of dy [R, N]; b may be undefined.
void add_bias_gradient(const Param& b, const Tensor& dy);

/// Whether attention makes its scores: for masks of dropout that are the CPU's, and for heads that no kernel takes.
bool goes_by_scores(int64_t width, int64_t heads, const Dropout& drop);
/// Of keys that a query does not see: finite, so that nothing becomes NaN.
constexpr double hidden_score = -30000;
/// The keys of a row of scores, so many that the next row begins where LibTorch's kernels can read it.
inline int64_t aligned_keys(int64_t keys) { return (keys + 15) / 16 * 16; }
/// The next masks of LibTorch's attention are those of this dropout: again in a layer that is computed again.
void draw_from(const Dropout& drop, at::Device device);
/// As Strided of kernels.cu.
struct Strided {
  const void* data;
  int64_t stride;
};
/// A gradient [B, T, H, C] as a matrix of rows, of `x`, which is copied where it has no such rows.
Strided rows_of(Tensor& x);
/// Gradients [B, T, H, C] of two or three projections side by side, [R, parts D]; the sums of their columns are added
/// to the gradient of their bias.
Tensor joined(std::vector<Tensor> parts, const Param& bias);

/// x[index] of the first axis, index int64 [N]; the gradients of a row are added in the order of the index.
Tensor taken_rows(const Tensor& x, const Tensor& index);

/// x times dropout, [R, N].
Tensor masked(const Tensor& rows, const kernels::Dropout& drop);

}  // namespace cloze::device
