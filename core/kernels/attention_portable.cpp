#define CLOZE_ISA portable
#include "core/kernels/attention.inc"
