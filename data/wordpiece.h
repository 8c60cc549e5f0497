#pragma once
// WordPiece as in BERT: basic tokenization, then the longest piece first.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cloze {

/// A vocabulary of pieces; `##` marks one that continues a word.
/// Source: google-research/bert, tokenization.py (BasicTokenizer, WordpieceTokenizer).
class WordPiece {
 public:
  /// `vocabulary` holds one piece a line, `name` stands for it in messages. Throws DataError.
  WordPiece(const std::string& vocabulary, const std::string& name, bool lowercase);
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  const std::vector<std::string>& pieces() const { return pieces_; }
  bool lowercase() const { return lowercase_; }

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& out) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, int32_t> starts_, continues_;
  size_t longest_ = 0;
  int32_t unknown_ = 0;
  bool lowercase_;
};

/// The words of BERT's basic tokenizer, one space before each: cleaned, CJK characters and punctuation apart, and lower
/// case without accents where asked.
std::string basic_tokenize(std::string_view text, bool lowercase);

}  // namespace cloze
