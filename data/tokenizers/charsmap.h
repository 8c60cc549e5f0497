#pragma once
// The normalisation table that SentencePiece compiles into its models.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A trie from spellings to replacements, stored as one array; every index is checked, so that a damaged table may
/// change text but never reads out of bounds. Source: google/sentencepiece, normalizer.cc, `DecodePrecompiledCharsMap`;
/// third_party/darts_clone, `DoubleArrayUnit`.
class Charsmap {
 public:
  /// Throws DataError with `where` for invalid bytes.
  Charsmap(std::string_view bytes, const std::string& where);
  /// The replacement of the shortest entry that is a prefix of `text`, if any.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string written_;  // texts, each with a zero byte after it
};

/// Decodes base64. Throws DataError with `where` for invalid input.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace cloze
