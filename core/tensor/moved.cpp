#include "core/tensor/moved.h"

#include <ATen/ATen.h>

namespace cloze {

at::Tensor moved_to(const at::Tensor& x, at::Device device) {
  if (!x.is_cpu() || device.is_cpu()) return x.to(device);
  return x.pin_memory().to(device, x.scalar_type(), /*non_blocking=*/true);
}

}  // namespace cloze
