#pragma once
// Copies to a device.
#include <ATen/core/Tensor.h>

namespace cloze {

/// `x` on `device`. From the CPU it goes by way of pinned memory, so that nobody waits for the copy.
at::Tensor moved_to(const at::Tensor& x, at::Device device);

}  // namespace cloze
