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

/// The number of sentinels after a vocabulary that has none, where the objectives replace spans by sentinels: the 100
/// of T5; else 0. Source: Raffel et al. 2020, section 3.1.4.
int64_t needed_sentinels(const Objectives& objectives);

/// Sets a model's special token ids to those of the tokenizer that it is trained with.
void take_special_ids(ModelConfig& model, const SpecialIds& special);

}  // namespace cloze
