#pragma once
// The `decoder` of a tokenizer.json: from tokens back to text.
// Source: huggingface/tokenizers 0.23, src/decoders.
#include <string>
#include <variant>
#include <vector>

#include "data/tokenizers/fields.h"
#include "data/tokenizers/pattern.h"

namespace cloze {

struct WordPieceDecoder {
  std::string prefix = "##";
  bool cleanup = true;  ///< no space before punctuation and English contractions
};
struct ByteLevelDecoder {};
struct MetaspaceDecoder {
  std::string mark;
  bool drops_first;
};
struct BpeDecoder {
  std::string suffix;
};
struct FuseDecoder {};
struct StripDecoder {
  std::string content;
  int64_t start, stop;  ///< maximum number removed at the start and the end of a token
};
struct ReplaceDecoder {
  Pattern pattern;
  std::string content;
};
struct ByteFallbackDecoder {};

using Decoder = std::variant<WordPieceDecoder, ByteLevelDecoder, MetaspaceDecoder, BpeDecoder, FuseDecoder,
                             StripDecoder, ReplaceDecoder, ByteFallbackDecoder>;

/// The steps of `decoder`; none for null. Throws DataError for an unknown kind or an option of another type.
/// `time`: of the expressions.
std::vector<Decoder> read_decoders(const Field& field, const std::shared_ptr<SearchTime>& time);

/// The text of tokens; without steps they are joined by spaces.
std::string decode_pieces(const std::vector<Decoder>& steps, std::vector<std::string> pieces);

}  // namespace cloze
