#pragma once
#include <ATen/ATen.h>

/// Deterministic pseudo-random numbers, the same on every machine.
inline at::Tensor numbers(at::IntArrayRef sizes, double phase, double size = 1) {
  int64_t n = 1;
  for (const auto s : sizes) n *= s;
  return (at::sin(at::arange(n, at::kDouble) * 1.7 + phase) * at::cos(at::arange(n, at::kDouble) * 0.61 + 2 * phase) *
          size)
      .to(at::kFloat)
      .view(sizes);
}
