#pragma once
// Gradient checkpointing: memory for time.
#include <functional>

#include "core/tensor/param.h"

namespace cloze {

/// f(x), keeping x alone; the backward pass runs `f` again for what it needs. Gradients of parameters inside `f` are
/// added to their `.grad()`. Dropout inside is a function of its key, so the second run equals the first.
/// Source: Chen et al. 2016, section 3 (arXiv 1604.06174).
Tensor recompute(std::function<Tensor(const Tensor&)> f, const Tensor& x);

}  // namespace cloze
