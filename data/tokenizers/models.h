#pragma once
// The `model` of a tokenizer.json: from a pre-token to ids.
// Source: huggingface/tokenizers 0.23, src/models.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/tokenizers/tokenizer_model.h"
#include "data/tokenizers/fields.h"

namespace cloze {

using Spellings = std::unordered_set<std::string>;

/// The vocabulary of a model, by id and by spelling. An unused id has an empty spelling.
struct Vocabulary {
  std::vector<std::string> pieces;
  std::unordered_map<std::string, int32_t> ids;
  Spellings special;  ///< spellings that never result from text

  /// The id of a spelling, or -1.
  int32_t find(const std::string& piece) const {
    const auto found = ids.find(piece);
    return found == ids.end() ? -1 : found->second;
  }
  /// The id of a spelling that may result from text, or -1.
  int32_t find_in_text(const std::string& piece) const { return special.contains(piece) ? -1 : find(piece); }
  /// Throws DataError with `where` for an id that is taken or far beyond the number of entries.
  void add(const std::string& piece, int64_t id, const Field& where);
  /// Throws DataError with `where` for pieces for which a search of all prefixes of a text has no bound: one that is
  /// long, since as many bytes are looked at from each character, or more than a trie holds.
  void require_searchable(const Field& where) const;
};

/// A model over one part (pre-token) of a text. Every const member may be called from many threads.
struct PartModel {
  virtual ~PartModel() = default;
  /// Appends the tokens of `part`, with their offsets in it. Throws DataError for text without a token if there is no
  /// unknown token.
  virtual void encode(std::string_view part, std::vector<TokenSpan>& out) const = 0;

  std::string type;  ///< `WordPiece`, `BPE`, `Unigram` or `WordLevel`
  Vocabulary vocabulary;
  int32_t unknown = -1;    ///< -1: none
  std::string continuing;  ///< prefix of tokens that continue a word; may be empty
};

/// special   spellings of special tokens, which never result from text
/// Throws DataError for an unknown kind, an option of another type, and one that Cloze does not support.
std::unique_ptr<PartModel> read_model(const Field& field, const Spellings& special);

std::unique_ptr<PartModel> read_bpe(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_unigram(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_word_piece(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_word_level(const Field& field, const Spellings& special);

/// Fills the vocabulary from an object of tokens and ids.
void read_vocabulary(const Field& field, Vocabulary& vocabulary);
/// The token of a byte: `<0x0A>`.
std::string byte_piece(uint8_t byte);

}  // namespace cloze
