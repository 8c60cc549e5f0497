#pragma once
// Classes and normal forms of Unicode characters, as in Hugging Face's tokenizers.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cloze {

bool is_white_space(int32_t c);          ///< property White_Space
bool is_punctuation(int32_t c);          ///< category P, and every ASCII mark
bool is_closing_punctuation(int32_t c);  ///< categories Pe and Pf: brackets and quotes
bool is_number(int32_t c);               ///< category N
bool is_mark(int32_t c);                 ///< category M
bool is_nonspacing_mark(int32_t c);      ///< category Mn
bool is_control(int32_t c);              ///< categories Cc, Cf and Co, without tab and line ends
bool is_word_character(int32_t c);       ///< \w of UTS 18
/// Ideographs that BERT treats as separate words. Differs: google-research/bert also has U+2B820 to U+2B91F, which
/// tokenizers lacks.
bool is_ideograph(int32_t c);
/// The lower case of `c`. For the capital dotted I, `second` receives a second code point; 0 for all others.
int32_t lower(int32_t c, int32_t& second);

/// A code point of a rewritten text: `change` is 0 if it replaces the next one of the old text, 1 if it is inserted, -n
/// if n further ones of the old text are removed.
struct Rewritten {
  int32_t code = 0;
  int change = 0;
};

/// Calls `emit` for the code points of a normal form of a text as they come: with `compatible` NFKD, else NFD; with
/// `compose` NFKC or NFC. Source: Unicode Standard Annex 15.
void each_normalized(std::string_view text, bool compatible, bool compose,
                     const std::function<void(const Rewritten&)>& emit);

bool is_ascii(std::string_view text);

}  // namespace cloze
