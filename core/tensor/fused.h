#pragma once
// The operators of ops.h with hand-written backward passes on the kernels, for the CPU in fp32 or bf16.
// Parameters enter the graph as leaves, but their gradients are added straight into `.grad()` (fp32, a view of the flat
// gradient): no dense temporary of a table, no cast, no second addition.
#include "core/tensor/ops.h"

namespace cloze::fused {

#include "core/tensor/two_forms.inc"
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace cloze::fused
