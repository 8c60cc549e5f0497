#pragma once
// Added tokens: found in a text before it is segmented.
// Source: huggingface/tokenizers 0.23, src/tokenizer/added_vocabulary.rs.
#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizers/fields.h"
#include "data/tokenizers/normalizers.h"
#include "data/tokenizers/piece_trie.h"

namespace cloze {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;                 ///< never found in a text: text that spells it is ordinary text
  bool single_word = false;             ///< found only if not adjacent to a word character
  bool lstrip = false, rstrip = false;  ///< includes the white space before it, after it
  bool normalized = true;               ///< searched in the normalised text
};

/// A token in the form of tokenizer.json and tokenizer_config.json, without its id.
AddedToken read_added_token(const Field& entry);
std::vector<AddedToken> read_added_tokens(const Field& field);

/// Finds tokens in a text, leftmost and longest first. A token that includes white space may share it with the next
/// one, which then starts before the end of this one. Differs: where only shared white space is left of a token,
/// tokenizers stops with an error, and here the token gets no part.
class TokenFinder {
 public:
  /// `spelling`: as it appears in the searched text.
  void add(const AddedToken& token, std::string_view spelling);
  /// True if no token can be found in any text.
  bool empty() const { return !finds_any_; }
  /// Splits each part that is text at the tokens in it.
  void split(NormalizedText& text) const;

 private:
  void split(const NormalizedText& text, const Part& part, std::vector<Part>& parts) const;

  std::vector<AddedToken> tokens_;
  PieceTrie trie_;  // spelling -> index in `tokens_`
  bool finds_any_ = false;
};

/// Tokens that are searched in the original text, and others in the normalised text.
class AddedTokens {
 public:
  /// Returns the spelling that is searched: the token's own, or its normalised form by `steps`.
  std::string add(const AddedToken& token, const std::vector<Normalizer>& steps);
  bool empty() const { return in_source_.empty() && in_normalized_.empty(); }
  /// Normalises a text by the same steps and splits it at the tokens in it. `continues`: as in `normalize`.
  void split(NormalizedText& text, const std::vector<Normalizer>& steps, bool continues) const;

 private:
  TokenFinder in_source_, in_normalized_;
};

}  // namespace cloze
