#pragma once
// The special tokens that objectives need.
#include "data/tokenizer.h"
#include "models/families/model_config.h"
#include "objectives/config.h"

namespace cloze {

/// Throws ConfigError if `tokenizer`, that of the prepared folder `tokens`, lacks a special token that the objectives
/// or their model need.
void require_special_tokens(const Objectives& objectives, const BackboneConfig& model, const Tokenizer& tokenizer,
                            const std::string& tokens);

/// Sets a model's special token ids to those of the tokenizer that it is trained with.
void take_special_ids(ModelConfig& model, const SpecialIds& special);

}  // namespace cloze
