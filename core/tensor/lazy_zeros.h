#pragma once
#include <ATen/ATen.h>

namespace cloze {

/// Zeros fp32 [count] on `device`. On the CPU the system maps their memory page by page at the first write, so that
/// rows of a table that are never written take none.
at::Tensor lazy_zeros(int64_t count, at::Device device);

}  // namespace cloze
