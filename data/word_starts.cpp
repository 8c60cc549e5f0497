#include "data/word_starts.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_map>

#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/scripts.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

constexpr std::string_view mark_of_space = "\u2581", mark_of_continuation = "##";

/// The byte that a piece stands for: `<0xE4>`; -1 for another piece.
int byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int value = 0;
  for (const char digit : piece.substr(3, 2)) {
    if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) return -1;
    value = 16 * value + (std::isdigit(static_cast<unsigned char>(digit)) != 0
                              ? digit - '0'
                              : std::toupper(static_cast<unsigned char>(digit)) - 'A' + 10);
  }
  return value;
}

/// The bytes of text that a piece stands for, without marks of its position in a word.
class PieceText {
 public:
  explicit PieceText(const Tokenizer& tokenizer) : in_bytes_(tokenizer.kind() == "byte_bpe") {
    if (!in_bytes_) return;
    for (int32_t byte = 0; byte < 256; ++byte)
      byte_of_symbol_.emplace(byte_code(static_cast<uint8_t>(byte)), static_cast<char>(byte));
  }

  std::string operator()(std::string_view piece) const {
    if (in_bytes_) return from_symbols(piece);
    if (const int byte = byte_of(piece); byte >= 0) return std::string(1, static_cast<char>(byte));
    for (const auto mark : {mark_of_space, mark_of_continuation})
      if (piece.starts_with(mark) && piece.size() > mark.size()) return std::string(piece.substr(mark.size()));
    return std::string(piece);
  }

 private:
  /// An added token is spelled as it is.
  std::string from_symbols(std::string_view piece) const {
    std::string text;
    for (size_t at = 0; at < piece.size();) {
      const auto found = byte_of_symbol_.find(next_code_point(piece, at));
      if (found == byte_of_symbol_.end()) return std::string(piece);
      text += found->second;
    }
    return text;
  }

  bool in_bytes_;
  std::unordered_map<int32_t, char> byte_of_symbol_;
};

/// Bytes of the character that begins with this one, 0 for none: ASCII, or inside a character.
size_t bytes_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 0;
}

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

WordStarts::WordStarts(const Tokenizer& tokenizer) {
  const PieceText decode(tokenizer);
  bool has_parts = false;
  for (int64_t id = 0; id < tokenizer.size(); ++id) {
    const auto text = decode(tokenizer.piece(id));
    FirstBytes first{.count = static_cast<uint8_t>(std::min<size_t>(text.size(), 3))};
    std::copy_n(text.begin(), first.count, first.bytes.begin());
    bytes_.push_back(first);
    if (tokenizer.starts_word(id) || text.empty()) {
      kinds_.push_back(tokenizer.starts_word(id) ? Kind::begins : Kind::continues);
      continue;
    }
    const bool is_part = text.size() < bytes_of_character(text[0]);
    has_parts = has_parts || is_part;
    size_t at = 0;
    kinds_.push_back(is_part                                                 ? Kind::by_bytes
                     : begins_unit_without_spaces(next_code_point(text, at)) ? Kind::begins
                                                                             : Kind::continues);
  }
  if (!has_parts) bytes_.clear();
}

bool WordStarts::begins_by_bytes(std::span<const int64_t> ids, size_t i) const {
  std::string character;
  size_t wanted = 0;
  for (size_t k = i; k < ids.size() && (k == i || character.size() < wanted); ++k) {
    const auto& next = bytes_[static_cast<size_t>(ids[k])];
    if (k > i && (next.count == 0 || !is_inside_character(next.bytes[0]))) break;
    character.append(next.bytes.data(), next.count);
    if (k == i) wanted = bytes_of_character(character[0]);
  }
  size_t at = 0;
  return begins_unit_without_spaces(next_code_point(character, at));
}

std::vector<uint8_t> WordStarts::of(std::span<const int64_t> ids) const {
  std::vector<uint8_t> starts(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) starts[i] = begins(ids, i);
  return starts;
}

int64_t count_words(std::string_view text) {
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const bool space = is_white_space(next_code_point(text, at));
    count += !space && !inside;
    inside = !space;
  }
  return count;
}

}  // namespace cloze
