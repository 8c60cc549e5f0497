#pragma once
// The memory that training takes at least, compared with that of the machine before any of it is taken.
#include "run/config.h"

namespace cloze {

/// Bytes that training takes at the least: weights, gradients and moments of the largest matrices, and what the blocks
/// keep of a batch for the backward pass. Tables of a vocabulary that comes from the data count nothing.
struct LeastMemory {
  double parameters = 0;
  double activations = 0;
};
LeastMemory least_memory(const RunConfig& config);

/// Throws ConfigError if training on the processor takes more than `machine` bytes.
void require_memory(const RunConfig& config, double machine);

}  // namespace cloze
