#define CLOZE_ISA avx512
#define CLOZE_ISA_NAME "avx512"
#include "core/kernels/kernels.inc"
