#include "run/device.h"

#include <torch/cuda.h>

#include "core/error.h"
#include "core/kernels/cpu.h"
#include "core/tensor/moved.h"

namespace cloze {

at::Device device_of(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  require<ConfigError>(torch::cuda::is_available(), "train.device is '", name,
                       "', but this LibTorch finds no GPU; use --set train.device=cpu, or a CUDA build of LibTorch");
  try {
    const at::Device device(name);
    require<ConfigError>(device.index() < torch::cuda::device_count(), "train.device is '", name, "', but there are ",
                         torch::cuda::device_count(), " GPUs; count from cuda:0");
    return device;
  } catch (const c10::Error&) {
    fail<ConfigError>("train.device '", name, "' is unknown; use cpu, cuda or cuda:N");
  }
}

bool has_fast_bf16(at::Device device) { return !device.is_cpu() || cpu_has_bf16(); }

Batch to_device(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  batch.on_host = std::make_shared<const Batch>(batch);
  for (auto* tensor : batch.tensors())
    if (tensor->defined()) *tensor = moved_to(*tensor, device);
  return batch;
}

}  // namespace cloze
