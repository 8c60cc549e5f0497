#pragma once
// What the processor can do, asked at run time.
#include <string>

namespace cloze {

/// The instruction set that kernels use: `avx512_bf16`, `avx512`, `avx2` or `portable`.
std::string best_isa();
/// True with units for tiles of bf16 numbers (AMX) beside AVX-512.
bool cpu_has_amx();
/// True when products of bf16 numbers are faster than fp32: AVX512-BF16 or AMX units.
bool cpu_has_bf16();
/// The model name that the system gives, or `unknown`.
std::string cpu_name();

}  // namespace cloze
