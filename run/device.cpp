#include "run/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
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

c10::DeviceIndex number_of(at::Device gpu) { return std::max<c10::DeviceIndex>(gpu.index(), 0); }

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
  const int capability = device.is_cuda() ? device::compute_capability(number_of(device)).first : 0;
  return capability == 0 || capability >= 8;  // Ampere
}

std::string shown_processor() {
  return concat(cpu_name(), ", kernels of ", best_isa(), "; bf16 computed ",
                cpu_has_bf16() ? "by its units" : "in fp32");
}

void wait_for(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(number_of(device));
}

double memory_of(at::Device gpu) {
  try {
    return static_cast<double>(at::getDeviceAllocator(gpu.type())->getMemoryInfo(number_of(gpu)).second);
  } catch (const c10::Error&) {
    return 0;
  }
}

double peak_memory(at::Device gpu) {
  const auto stats = at::getDeviceAllocator(gpu.type())->getDeviceStats(number_of(gpu));
  return static_cast<double>(stats.allocated_bytes[0].peak);  // of all pools
}

void reset_peak_memory(at::Device gpu) { at::getDeviceAllocator(gpu.type())->resetPeakStats(number_of(gpu)); }

Batch to_device(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  batch.on_host = std::make_shared<const Batch>(batch);
  if (const auto rows = unpad_rows(batch.attention_mask))
    batch.unpadded = std::make_shared<const UnpaddedRows>(rows->to(device));
  for (auto* tensor : batch.tensors())
    if (tensor->defined()) *tensor = moved_to(*tensor, device);
  return batch;
}

}  // namespace cloze
