#pragma once
// The part of WordPiece that its encoder and its trainer share.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/encoder.h"

namespace cloze {

/// The words of BERT's basic tokenizer, one space before each: cleaned, punctuation apart, and what the rules ask for.
/// `places` receives, for each byte that is returned, where its character starts in `text`.
std::string basic_tokenize(std::string_view text, const WordPieceRules& rules, std::vector<uint32_t>* places = nullptr);

}  // namespace cloze
