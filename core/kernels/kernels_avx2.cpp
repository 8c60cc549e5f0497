#define CLOZE_ISA avx2
#define CLOZE_ISA_NAME "avx2"
#include "core/kernels/kernels.inc"
