#if defined(__AVX512BF16__)
#define CLOZE_ISA avx512_bf16
#include "core/kernels/gemm.inc"
#endif
