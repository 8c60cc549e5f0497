#pragma once
// Builds the network of a family from its config.
#include "models/backbone.h"
#include "models/families/model_config.h"

namespace cloze {

/// The backbone of a model config. Throws ConfigError.
std::shared_ptr<Backbone> make_backbone(const ModelConfig& model, const BackboneParts& parts);

}  // namespace cloze
