#pragma once
// The normalisation table that SentencePiece compiles into its models.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A trie from spelling to what is written instead, laid out as one array; every index is checked, so that a damaged
/// table changes text and reads no foreign memory. Source: google/sentencepiece, normalizer.cc,
/// `DecodePrecompiledCharsMap`; third_party/darts_clone, `DoubleArrayUnit`.
class Charsmap {
 public:
  /// Throws DataError with `where` for bytes that are no table.
  Charsmap(std::string_view bytes, const std::string& where);
  /// What is written for the shortest entry that `text` begins with; none without one.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string written_;  // texts, each with a zero byte after it
};

/// The bytes that base64 stands for. Throws DataError with `where` for what is none.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace cloze
