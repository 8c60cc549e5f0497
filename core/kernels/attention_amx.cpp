#define CLOZE_ISA amx
#include "core/kernels/attention.inc"
