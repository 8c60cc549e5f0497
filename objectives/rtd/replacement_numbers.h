#pragma once
// The numbers by which a generator draws.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace cloze {

/// The numbers fp64 [n] in [0, 1) by which the generator of rtd draws the replacements in a pass of this key: the first
/// token whose cumulative probability is above the number.
at::Tensor replacement_numbers(int64_t n, uint64_t key);

}  // namespace cloze
