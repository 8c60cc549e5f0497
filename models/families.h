#pragma once
// What the families share beside the stack: embeddings, places of tokens that follow others.
#include "models/stack.h"

namespace cloze {

/// Token, position and type tables as a config says; `lent` ones belong to another network. Throws ConfigError.
std::shared_ptr<Embeddings> make_embeddings(const EncoderConfig& config, const LentTables& lent);

/// Places int64 [B, T] of tokens that follow those whose keys and values are `past` (undefined: none).
Tensor places_behind(const Tensor& ids, const Tensor& past);

std::shared_ptr<Backbone> make_encoder_decoder(const EncoderConfig& config);
/// Throws ConfigError for options that XLNet does not have.
std::shared_ptr<Backbone> make_xlnet(const EncoderConfig& config);

}  // namespace cloze
