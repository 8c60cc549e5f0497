#define CLOZE_ISA avx512
#include "core/kernels/attention.inc"
