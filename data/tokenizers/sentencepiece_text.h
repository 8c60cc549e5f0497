#pragma once
// Text as the code of SentencePiece's families prepares it, before the library sees it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// The text after the preprocessing of the family. `sources` (or null) receives the offset in `text` of each of its
/// bytes. Source: zihangdai/xlnet, prepro_utils.py, preprocess_text; google-research/albert, tokenization.py,
/// preprocess_text.
std::string prepared(const SentencePieceRules& rules, std::string_view text, std::vector<uint32_t>* sources = nullptr);

/// True for a piece that ends in a digit and a comma.
bool ends_with_digit_comma(std::string_view piece);

}  // namespace cloze
