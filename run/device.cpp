#include "run/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/cuda.h>

#include "core/device/compiled.h"
#include "core/error.h"
#include "core/kernels/cpu.h"
#include "core/log.h"
#include "core/tensor/moved.h"
#include "run/run.h"

namespace cloze {

namespace {

constexpr const char* cuda_library =
    "; build with one that has it, `cmake -DCMAKE_PREFIX_PATH=\"$(python3 -c 'import torch; "
    "print(torch.utils.cmake_prefix_path)')\"` after `pip install torch`, or use --set train.device=cpu";

at::Device parsed_device(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const c10::Error&) {
    fail<ConfigError>("train.device '", name, "' is unknown; use cpu, cuda or cuda:N");
  }
}

}  // namespace

at::Device device_of(const std::string& name) {
  const auto device = parsed_device(name);
  if (device.is_cpu()) return device;
  require<ConfigError>(at::detail::getCUDAHooks().isBuilt(), "train.device is '", name,
                       "', but this LibTorch has no CUDA", cuda_library);
  const int cards = torch::cuda::device_count();
  require<ConfigError>(
      cards > 0, "train.device is '", name,
      "', but LibTorch finds no GPU; `nvidia-smi` tells whether there is a driver that sees one, or use "
      "--set train.device=cpu");
  if (cards == 1)
    require<ConfigError>(device.index() < 1, "train.device is '", name, "', but there is one GPU; use cuda");
  require<ConfigError>(device.index() < cards, "train.device is '", name, "', but there are ", cards,
                       " GPUs; use cuda:0 to cuda:", cards - 1);
  return device;
}

void move_to_own_device(LoadedRun& run) {
  const auto& name = run.config.train.device;
  if (name == "cpu") return;
  try {
    const auto device = device_of(name);
    for (const auto& [parameter, param] : collect_params(*run.network)) {
      auto value = param.value();
      value.set_data(value.detach().to(device));
    }
  } catch (const ConfigError&) {
    log_info("run", concat(run.folder, ": was trained on ", name, ", which is not here; it is computed on the CPU"));
  }
}

bool has_fast_bf16(at::Device device) {
  if (device.is_cpu()) return cpu_has_bf16();
  const int card = std::max<int>(device.index(), 0);
  const int capability = device.is_cuda() ? device::compute_capability(card).first : 0;
  return capability == 0 || capability >= 8;  // Ampere
}

Batch to_device(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  batch.on_host = std::make_shared<const Batch>(batch);
  for (auto* tensor : batch.tensors())
    if (tensor->defined()) *tensor = moved_to(*tensor, device);
  return batch;
}

}  // namespace cloze
