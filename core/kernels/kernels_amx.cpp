#define CLOZE_ISA amx
#define CLOZE_ISA_NAME "amx"
#include "core/kernels/kernels.inc"
