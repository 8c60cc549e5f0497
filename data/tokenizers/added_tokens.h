#pragma once
// Tokens that are taken from a text before it is cut.
// Source: huggingface/tokenizers 0.23, src/tokenizer/added_vocabulary.rs.
#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizers/fields.h"
#include "data/tokenizers/normalized_text.h"
#include "data/tokenizers/piece_trie.h"

namespace cloze {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;                 ///< never taken from a text: text that spells it is text
  bool single_word = false;             ///< taken only where no letter stands next to it
  bool lstrip = false, rstrip = false;  ///< takes the white space before it, after it
  bool normalized = true;               ///< looked for in the normalised text
};

std::vector<AddedToken> read_added_tokens(const Field& field);

/// Finds tokens in a text, the longest of those that begin first.
class TokenFinder {
 public:
  /// `spelling`: as the text has it where the token is looked for.
  void add(const AddedToken& token, std::string_view spelling);
  /// True when no text can hold a token that is taken.
  bool empty() const { return !takes_any_; }
  /// Cuts each part that is text at the tokens in it.
  void split(NormalizedText& text) const;

 private:
  std::vector<AddedToken> tokens_;
  PieceTrie trie_;  // spelling -> place in `tokens_`
  bool takes_any_ = false;
};

}  // namespace cloze
