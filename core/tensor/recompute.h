#pragma once
// Gradient checkpointing: trades time for memory.
#include <functional>

#include "core/tensor/param.h"

namespace cloze {

/// f(inputs), saving only the inputs; the backward pass runs `f` again to recompute the activations. Gradients of the
/// parameters of `layer`, all that are inside `f`, are added to their `.grad()`. An input may be undefined, an output
/// may not. Dropout inside is a function of its key, so the second run equals the first. Source: Chen et al. 2016,
/// section 3 (arXiv 1604.06174).
std::vector<Tensor> recompute(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f,
                              const std::vector<Tensor>& inputs, const Layer& layer);

}  // namespace cloze
