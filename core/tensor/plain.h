#pragma once
// The operators of ops.h in plain LibTorch: differentiable by autograd, traceable, on any device and in any dtype.
// No size is read from a tensor here, so that a trace runs at other shapes.
#include "core/tensor/ops.h"

namespace cloze::plain {

/// The parameter in `dtype`: the value itself, its bf16 shadow, or (with gradients enabled) a cast of the value.
Tensor weight(const Param& param, at::ScalarType dtype);

/// [B, T, H C] to [B, H, T, C].
Tensor heads_of(const Tensor& x, int64_t heads);
/// softmax(scores) over the last axis where `visible` (bool, undefined: everywhere) is true; 0 where it is false, even
/// if it is false everywhere.
Tensor visible_softmax(const Tensor& scores, const Tensor& visible);

/// Aligns position scores with their keys: by_distance [..., T, S + T] over the distances S, S - 1, ..., 1 - T becomes
/// [..., T, S]; query t and key s have the element T - t + s. `keys` int64 [S]: 0, 1, 2, ... Source: Dai et al.
/// 2019, appendix B (arXiv 1901.02860).
Tensor relative_shift(const Tensor& by_distance, const Tensor& keys);

Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance);
Tensor sum_by_distance(const Tensor& x, int64_t reach);

/// The factors, 0 or 1 / (1 - p), that a dropout applies to a tensor of `sizes`; fp32, the same on every device.
Tensor dropout_mask(at::IntArrayRef sizes, const Dropout& drop, at::Device device);

#include "core/tensor/two_forms.inc"
Tensor activation(const Tensor& x, Activation activation);

}  // namespace cloze::plain
