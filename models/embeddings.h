#pragma once
// The input of a stack: embeddings as a config says, and position ids of tokens that follow others.
#include "models/config.h"
#include "models/layers/layers.h"

namespace cloze {

/// Token, position and type tables as a config says; `tied` ones belong to another network. Throws ConfigError.
std::shared_ptr<Embeddings> make_embeddings(const BackboneConfig& config, const TiedTables& tied);

/// Position ids int64 [B, T] of tokens that follow those whose keys and values are `past` (undefined: none).
Tensor position_ids_after(const Tensor& ids, const Tensor& past);

}  // namespace cloze
