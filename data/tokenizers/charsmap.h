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

/// Throws DataError with `where` unless the SentencePiece library, which checks no index, reads within `bytes` whatever
/// the text. Source: google/sentencepiece, normalizer.cc, `NormalizePrefix`; third_party/darts_clone,
/// `commonPrefixSearch`.
void require_readable_charsmap(std::string_view bytes, const std::string& where);

/// Decodes base64. Throws DataError with `where` for invalid input.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace cloze
