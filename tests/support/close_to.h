#pragma once
#include <ATen/ATen.h>

/// The maximum absolute difference of two tensors, relative to max(1, maximum absolute expected element).
inline double error_of(const at::Tensor& got, const at::Tensor& wanted) {
  if (got.sizes() != wanted.sizes()) return 1e30;
  if (got.numel() == 0) return 0;
  const auto a = got.detach().to(at::kDouble), b = wanted.detach().to(at::kDouble);
  return ((a - b).abs().max() / std::max(1.0, b.abs().max().item<double>())).item<double>();
}
