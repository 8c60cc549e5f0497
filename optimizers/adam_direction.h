#pragma once
// Adam's moments at a step, and its direction, which AdamW and LAMB share.
#include "optimizers/adam.h"
#include "optimizers/update.h"

namespace cloze::optimizers {

/// Adam's hyperparameters at a step, and a chunk with its moments, for the kernels.
kernels::Adam adam_at(const AdamMoments& options, const Step& step);
kernels::Parameters adam_range(const Buffers& buffers, const Chunk& chunk);

/// The direction in plain operators.
Tensor adam_direction(const AdamMoments& options, const Step& step, const Target& target);

}  // namespace cloze::optimizers
