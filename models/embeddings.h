#pragma once
// The input of a stack: embeddings built from a config, and position ids after a key-value cache.
#include "models/transformer_config.h"
#include "models/layers/layers.h"

namespace cloze {

/// Token, position and type embeddings built from a config; those in `tied` belong to another network. Throws
/// ConfigError.
std::shared_ptr<Embeddings> make_embeddings(const TransformerConfig& config, const TiedTables& tied);

/// Position ids int64 [B, T] of tokens after those in the key-value cache `past` (undefined: empty).
Tensor position_ids_after(const Tensor& ids, const Tensor& past);

}  // namespace cloze
