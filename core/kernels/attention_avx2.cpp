#define CLOZE_ISA avx2
#include "core/kernels/attention.inc"
