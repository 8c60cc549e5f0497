#pragma once
// Features of the processor, detected at run time.
#include <string>

namespace cloze {

/// The instruction set of the kernels that every processor runs; on Arm all of them have the vectors of NEON.
#if defined(__aarch64__)
constexpr const char* base_isa = "neon";
#else
constexpr const char* base_isa = "portable";
#endif

/// The instruction set that the kernels use: `amx` (with AVX512-BF16), `avx512_bf16`, `avx512`, `avx2` or `base_isa`;
/// the best one of this processor, or the lower one that the environment variable CLOZE_ISA names.
std::string best_isa();
/// True if bf16 matrix multiplications are faster than fp32: AVX512-BF16 or AMX.
bool cpu_has_bf16();
/// The model name as the system reports it, on Arm the numbers of its maker and its model, or `unknown`.
std::string cpu_name();

}  // namespace cloze
