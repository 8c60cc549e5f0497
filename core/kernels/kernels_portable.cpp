#define CLOZE_ISA portable
#define CLOZE_ISA_NAME "portable"
#include "core/kernels/kernels.inc"
