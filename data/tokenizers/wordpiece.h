#pragma once
// BERT's basic tokenizer, shared by WordPiece and its trainer.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// The words of BERT's basic tokenizer, one space before each: cleaned, split at punctuation, and changed by the rules.
/// `offsets` receives, for each returned byte, the start of its character in `text`.
std::string basic_tokenize(std::string_view text, const WordPieceRules& rules,
                           std::vector<uint32_t>* offsets = nullptr);

}  // namespace cloze
