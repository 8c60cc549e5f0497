#pragma once
// From a family's config to its network.
#include "models/backbone.h"
#include "models/families/model_config.h"

namespace cloze {

/// The network that a family is composed of. Throws ConfigError.
std::shared_ptr<Backbone> make_backbone(const ModelConfig& model, const BackboneParts& parts);

}  // namespace cloze
