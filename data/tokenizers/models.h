#pragma once
// The third step of a tokenizer.json: from a part of a text to ids.
// Source: huggingface/tokenizers 0.23, src/models.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/tokenizers/encoder.h"
#include "data/tokenizers/fields.h"

namespace cloze {

using Spellings = std::unordered_set<std::string>;

/// The pieces of a model by id, and the way back. An id that no piece has is an empty text.
struct Vocabulary {
  std::vector<std::string> pieces;
  std::unordered_map<std::string, int32_t> ids;
  Spellings special;  ///< spellings that are no pieces in a text

  /// The id of a piece, or -1.
  int32_t find(const std::string& piece) const {
    const auto found = ids.find(piece);
    return found == ids.end() ? -1 : found->second;
  }
  /// The id of a piece that text can be cut into, or -1.
  int32_t find_in_text(const std::string& piece) const { return special.contains(piece) ? -1 : find(piece); }
  /// Throws DataError with `where` for an id that is taken or far beyond the number of pieces.
  void add(const std::string& piece, int64_t id, const Field& where);
};

/// A model over one part of a text. Every const member may be called from many threads.
struct PartModel {
  virtual ~PartModel() = default;
  /// Appends the pieces of `part`, with their bytes in it. Throws DataError for text that neither a piece nor an
  /// unknown token stands for.
  virtual void encode(std::string_view part, std::vector<TextPiece>& out) const = 0;

  std::string type;  ///< `WordPiece`, `BPE`, `Unigram` or `WordLevel`
  Vocabulary vocabulary;
  int32_t unknown = -1;    ///< -1: none
  std::string continuing;  ///< what a piece inside a word begins with; empty: nothing
};

/// special   spellings of special tokens, which text is not cut into
/// Throws DataError for an unknown kind, an option of another type, and one that Cloze cannot honour.
std::unique_ptr<PartModel> read_model(const Field& field, const Spellings& special);

std::unique_ptr<PartModel> read_bpe(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_unigram(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_word_piece(const Field& field, const Spellings& special);
std::unique_ptr<PartModel> read_word_level(const Field& field, const Spellings& special);

/// Fills the vocabulary from an object of pieces and ids.
void read_vocabulary(const Field& field, Vocabulary& vocabulary);
/// The piece that stands for a byte: `<0x0A>`.
std::string byte_piece(uint8_t byte);

}  // namespace cloze
