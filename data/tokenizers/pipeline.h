#pragma once
// Hugging Face's tokenizer.json as an encoder.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizers/encoder.h"

namespace cloze {

/// The tokenizer of a tokenizer.json: normalizer, pre-tokenizer, model, added tokens and decoder, whatever their kinds.
/// Text that spells a special token is text, as everywhere in Cloze; added tokens that are not special are taken from
/// it.
///
/// content, json   of the file, as it is and parsed
/// path            of the file, for messages
/// Throws DataError with the part that is damaged, of another type, or of a kind that Cloze does not have.
/// Source: huggingface/tokenizers 0.23.
/// Differs: a byte that is no UTF-8 is read as U+FFFD; positions after a character that the model leaves out, or that a
/// Precompiled normaliser takes away at the begin of a text, are those of the text.
std::unique_ptr<Encoder> make_pipeline(std::string content, const nlohmann::json& json, const std::string& path);

}  // namespace cloze
