#pragma once
// What the options of a model forbid.
#include "core/limits.h"
#include "models/families/model_config.h"

namespace cloze {

/// The rules between the options of a model: those of every family, of encoder-decoders and of two streams.
void check_limits(const ModelConfig& model, Limits& limits);

}  // namespace cloze
