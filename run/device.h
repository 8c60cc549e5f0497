#pragma once
// The device that a run computes on.
#include <string>

#include "objectives/network.h"

namespace cloze {

/// The device of a config. Throws ConfigError if it is not available.
at::Device device_of(const std::string& name);

/// Where the weights of a network are.
inline at::Device device_of(const Network& network) { return network.backbone->token_embedding().value().device(); }

struct LoadedRun;
/// Moves the network of a run to the device that it was trained on. Where this machine lacks it, the network stays on
/// the CPU, which is logged.
void move_to_own_device(LoadedRun& run);

/// True if matrix multiplications with `precision: bf16` run in bf16 on this device: the processor has AVX512-BF16 or
/// AMX units, or the GPU is of 2020 or later.
bool has_fast_bf16(at::Device device);

/// This processor with the kernels that it has: `AMD EPYC, kernels of avx512_bf16; bf16 computed by its units`.
std::string shown_processor();

/// Waits for what a GPU has been asked for.
void wait_for(at::Device device);

/// The memory of a GPU [bytes]; 0: LibTorch does not tell.
double memory_of(at::Device gpu);

/// The most of it that tensors have taken, since the process began or `reset_peak_memory`.
double peak_memory(at::Device gpu);
void reset_peak_memory(at::Device gpu);

/// A batch of the CPU with its tensors on `device`, to which copies are not waited for.
Batch to_device(Batch batch, at::Device device);

}  // namespace cloze
