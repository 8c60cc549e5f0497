#define CLOZE_ISA avx2
#include "core/kernels/gemm_fp32.inc"
