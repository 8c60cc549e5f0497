#pragma once
// What the class of a tokenizer in transformers makes of a tokenizer.json: tokenizer_config.json comes before its
// steps.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/tokenizers/families.h"

namespace cloze {

/// Gives the steps of `tokenizer`, a tokenizer.json, what `config`, the tokenizer_config.json beside it, and the
/// defaults of its class say of case, accents, ideographs and the space before a text. Returns the values that were
/// others, in words. Source: transformers 5.23, models/*/tokenization_*.py.
std::string apply_class_rules(const TokenizerFamily& family, const nlohmann::json& config, nlohmann::json& tokenizer);

/// A sentence where the steps of a tokenizer.json are of other kinds than those of the class, which transformers 5 puts
/// in their place; else empty.
std::string steps_beyond_class(const TokenizerFamily& family, const nlohmann::json& tokenizer);

}  // namespace cloze
