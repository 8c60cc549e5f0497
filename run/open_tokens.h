#pragma once
// The prepared tokens that a config trains on.
#include <string>

#include "data/token_store.h"
#include "run/config.h"

namespace cloze {

/// The split `train` or `valid` of data.tokens; to train on, data.mixture where it is given. Where an objective of
/// training or evaluation needs sentinels and the tokenizer has none, they follow its tokens, so that one prepared
/// folder serves every model; that is logged with the training split. Throws DataError, also as read_mixture.
TokenStore open_tokens(const RunConfig& config, const std::string& split);

}  // namespace cloze
