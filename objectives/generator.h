#pragma once
// The generator of a discriminator.
#include "models/families/model_config.h"
#include "objectives/kind.h"

namespace cloze {

/// A network that replaces masked tokens before a model reads them.
struct Generator {
  ModelConfig model;
  ObjectiveConfig objective;    ///< that trains it
  bool own_embeddings = false;  ///< its embeddings are not those of the model
};

}  // namespace cloze
