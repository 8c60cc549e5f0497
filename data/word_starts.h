#pragma once
// Words: how many a text has, and where they begin in a sequence of tokens.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace cloze {

/// Words as the pieces of a vocabulary show them: a run between spaces, and where a script has none between its words,
/// the pieces of that script. Source: google-research/bert, tokenization.py, where each ideograph is a word.
/// Differs: so are the characters of other scripts without spaces, and in every vocabulary; a piece of several
/// characters is one word.
class WordStarts {
 public:
  explicit WordStarts(const Tokenizer& tokenizer);
  /// True where ids[i] begins a word. A character in several pieces (byte-level BPE, byte fallback) is decided by all
  /// its bytes.
  bool begins(std::span<const int64_t> ids, size_t i) const {
    const auto kind = kinds_[static_cast<size_t>(ids[i])];
    return kind == Kind::begins || (kind == Kind::by_bytes && begins_by_bytes(ids, i));
  }
  /// The same of every token.
  std::vector<uint8_t> of(std::span<const int64_t> ids) const;

 private:
  enum class Kind : uint8_t { continues, begins, by_bytes };
  struct FirstBytes {
    std::array<char, 3> bytes{};
    uint8_t count = 0;
  };
  bool begins_by_bytes(std::span<const int64_t> ids, size_t i) const;
  std::vector<Kind> kinds_;        // [size]
  std::vector<FirstBytes> bytes_;  // [size]; empty where no piece has a part of a character
};

/// The number of words of a text, separated by white space, that of Unicode included.
int64_t count_words(std::string_view text);

}  // namespace cloze
