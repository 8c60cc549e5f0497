#pragma once
// Tokens that are taken from a text before it is cut.
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
  bool special = false;                 ///< never taken from a text: text that spells it is text
  bool single_word = false;             ///< taken only where no letter stands next to it
  bool lstrip = false, rstrip = false;  ///< takes the white space before it, after it
  bool normalized = true;               ///< looked for in the normalised text
};

/// A token as tokenizer.json and tokenizer_config.json write it, without its id.
AddedToken read_added_token(const Field& entry);
std::vector<AddedToken> read_added_tokens(const Field& field);

/// Finds tokens in a text, the longest of those that begin first. A token that takes white space may share it with the
/// next one, which then begins before the end of this one. Differs: where nothing but shared white space is left of a
/// token, tokenizers gives up, and here the token has no part.
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
  PieceTrie trie_;  // spelling -> index in `tokens_`
  bool takes_any_ = false;
};

/// Tokens that are looked for in a text as it is, and others in its normal form.
class AddedTokens {
 public:
  /// Returns the spelling by which the token is looked for: its own, or that of its normal form by `steps`.
  std::string add(const AddedToken& token, const std::vector<Normalizer>& steps);
  bool empty() const { return in_source_.empty() && in_normalized_.empty(); }
  /// Normalises a text by the same steps and cuts it at the tokens in it. `goes_on`: as in `normalize`.
  void split(NormalizedText& text, const std::vector<Normalizer>& steps, bool goes_on) const;

 private:
  TokenFinder in_source_, in_normalized_;
};

}  // namespace cloze
