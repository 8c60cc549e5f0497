#pragma once
// The device that a run computes on.
#include <string>

#include "objectives/batch.h"

namespace cloze {

/// The device of a config. Throws ConfigError if it is not available.
at::Device device_of(const std::string& name);

/// True if matrix multiplications with `precision: bf16` run in bf16 on this device: the processor has AVX512-BF16 or
/// AMX units, or it is a GPU.
bool has_fast_bf16(at::Device device);

/// A batch of the CPU with its tensors on `device`, to which copies are not waited for.
Batch to_device(Batch batch, at::Device device);

}  // namespace cloze
