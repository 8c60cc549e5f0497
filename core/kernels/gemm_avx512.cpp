#define CLOZE_ISA avx512
#include "core/kernels/gemm_fp32.inc"
