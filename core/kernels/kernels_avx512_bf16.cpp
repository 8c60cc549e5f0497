#define CLOZE_ISA avx512_bf16
#define CLOZE_ISA_NAME "avx512_bf16"
#include "core/kernels/kernels.inc"
