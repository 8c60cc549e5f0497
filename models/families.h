#pragma once
// What the families share beside the stack: embeddings, places of tokens that follow others, deviations of the first weights.
#include "models/stack.h"

namespace cloze {

/// Token, position and type tables as a config says; `lent` ones belong to another network. Throws ConfigError.
std::shared_ptr<Embeddings> make_embeddings(const EncoderConfig& config, const LentTables& lent);

/// Places int64 [B, T] of tokens that follow those whose keys and values are `past` (undefined: none).
Tensor places_behind(const Tensor& ids, const Tensor& past);

/// Gives parameters the standard deviation that `initializer` asks for, where it is not initializer_range.
void set_init_ranges(const Backbone& backbone, const EncoderConfig& config);

std::shared_ptr<Backbone> make_encoder_decoder(const EncoderConfig& config);
/// Throws ConfigError for options that XLNet does not have.
std::shared_ptr<Backbone> make_xlnet(const EncoderConfig& config);

/// Scores by distance moved to their keys: by_distance [..., T, S + T] of the distances S, S - 1, ..., 1 - T becomes [..., T, S], where query t
/// and key s meet at number T - t + s. `keys` int64 [S]: 0, 1, 2, ...
/// Source: Dai et al. 2019, appendix B (arXiv 1901.02860).
Tensor relative_shift(const Tensor& by_distance, const Tensor& keys);

}  // namespace cloze
