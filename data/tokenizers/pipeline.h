#pragma once
// Hugging Face's tokenizer.json as a tokenizer model.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// The tokenizer of a tokenizer.json: normalizer, pre-tokenizer, model, added tokens and decoder of all supported
/// kinds. Text that spells a special token is ordinary text, as everywhere in Cloze; other added tokens are found in
/// it.
///
/// content, json   of the file, raw and parsed
/// path            of the file, for messages
/// Throws DataError naming the part that is damaged, of another type, or of an unsupported kind.
/// Source: huggingface/tokenizers 0.23.
/// Differs: an invalid UTF-8 byte is read as U+FFFD; offsets after a character that the model drops, or that a
/// Precompiled normaliser removes at the start of a text, are those of the text.
std::unique_ptr<TokenizerModel> make_pipeline(std::string content, const nlohmann::json& json, const std::string& path);

}  // namespace cloze
