#pragma once
// What objectives ask of a tokenizer.
#include "data/tokenizer.h"
#include "models/families/model_config.h"
#include "objectives/config.h"

namespace cloze {

/// Throws ConfigError where `tokenizer`, that of the prepared folder `tokens`, lacks a special token that the
/// objectives or their model need.
void require_special_tokens(const Objectives& objectives, const BackboneConfig& model, const Tokenizer& tokenizer,
                            const std::string& tokens);

}  // namespace cloze
