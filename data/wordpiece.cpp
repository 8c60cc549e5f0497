#include "data/wordpiece.h"

#include <utf8proc.h>

#include <array>

#include "core/error.h"
#include "data/utf8.h"

namespace cloze {

namespace {

constexpr size_t max_word_characters = 200;

enum class Kind : uint8_t { letter, space, control, punctuation, cjk };

bool is_cjk(int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

Kind kind_of(int32_t c) {
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Kind::space;
  if (c == 0 || c == 0xFFFD) return Kind::control;
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126)) return Kind::punctuation;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_ZS: return Kind::space;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF: return Kind::control;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return Kind::punctuation;
    default: return is_cjk(c) ? Kind::cjk : Kind::letter;
  }
}

const std::array<Kind, 128>& ascii_kinds() {
  static const auto table = [] {
    std::array<Kind, 128> kinds{};
    for (int32_t c = 0; c < 128; ++c) kinds[static_cast<size_t>(c)] = kind_of(c);
    return kinds;
  }();
  return table;
}

bool is_cased_letter(int32_t c) { return c >= 0 && (utf8proc_tolower(c) != c || utf8proc_toupper(c) != c); }

/// Writes a code point in lower case, decomposed, without combining marks.
void append_folded(std::string& out, int32_t c) {
  utf8proc_int32_t parts[32];
  const auto n = utf8proc_decompose_char(utf8proc_tolower(c), parts, 32, UTF8PROC_DECOMPOSE, nullptr);
  for (utf8proc_ssize_t i = 0; i < n && i < 32; ++i)
    if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN) append_code_point(out, parts[i]);
}

}  // namespace

std::string basic_tokenize(std::string_view text, bool lowercase) {
  const auto& ascii = ascii_kinds();
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  bool in_word = false;
  int32_t before = -1;
  for (size_t at = 0; at < text.size();) {
    const int32_t c = next_code_point(text, at);
    const Kind kind = c < 0 ? Kind::control : c < 128 ? ascii[static_cast<size_t>(c)] : kind_of(c);
    if (kind == Kind::control) continue;
    if (kind == Kind::space) {
      in_word = false;
      before = -1;
      continue;
    }
    const bool alone = kind == Kind::punctuation || kind == Kind::cjk;
    if (!in_word || alone) out += ' ';
    in_word = !alone;
    if (c < 128) {
      out += static_cast<char>(lowercase && c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (!lowercase) {
      append_code_point(out, c);
    } else if (c == 0x3A3) {
      // A capital sigma ends a word as a final sigma (SpecialCasing.txt, Final_Sigma).
      size_t ahead = at;
      const bool last = ahead >= text.size() || !is_cased_letter(next_code_point(text, ahead));
      append_code_point(out, last && is_cased_letter(before) ? 0x3C2 : 0x3C3);
    } else {
      append_folded(out, c);
    }
    before = c;
  }
  return out;
}

WordPiece::WordPiece(const std::string& vocabulary, const std::string& name, bool lowercase) : lowercase_(lowercase) {
  for (size_t begin = 0; begin < vocabulary.size();) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    std::string piece = vocabulary.substr(begin, end - begin);
    if (!piece.empty() && piece.back() == '\r') piece.pop_back();
    pieces_.push_back(std::move(piece));
    begin = end + 1;
  }
  require<DataError>(!pieces_.empty(), name, ": the vocabulary is empty");
  require<DataError>(pieces_.size() < (1u << 24), name, ": the vocabulary has more than 16 million lines, so it is none");
  for (size_t id = 0; id < pieces_.size(); ++id) {
    std::string_view piece = pieces_[id];
    const bool continues = piece.size() > 2 && piece.substr(0, 2) == "##";
    if (continues) piece.remove_prefix(2);
    const bool fresh = (continues ? continues_ : starts_).emplace(piece, static_cast<int32_t>(id)).second;
    require<DataError>(fresh || piece.empty(), name, ":", id + 1, ": the piece '", pieces_[id], "' is there twice; every line of a vocabulary must differ");
    longest_ = std::max(longest_, piece.size());
  }
  const auto unknown = starts_.find("[UNK]");
  require<DataError>(unknown != starts_.end(), name, ": the vocabulary has no piece [UNK]; a WordPiece vocabulary needs one");
  unknown_ = unknown->second;
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& out) const {
  size_t characters = 0;
  for (const char c : word) characters += (c & 0xC0) != 0x80;
  const size_t kept = out.size();
  for (size_t begin = 0; begin < word.size();) {
    const auto& table = begin == 0 ? starts_ : continues_;
    size_t length = std::min(word.size() - begin, longest_);
    auto found = table.end();
    for (; length > 0; --length) {
      if (begin + length < word.size() && (word[begin + length] & 0xC0) == 0x80) continue;   // not inside a character
      found = table.find(word.substr(begin, length));
      if (found != table.end()) break;
    }
    if (found == table.end() || characters > max_word_characters) {
      out.resize(kept);
      out.push_back(unknown_);
      return;
    }
    out.push_back(found->second);
    begin += length;
  }
}

void WordPiece::encode(std::string_view text, std::vector<int32_t>& out) const {
  const std::string spaced = basic_tokenize(text, lowercase_);
  for (size_t begin = 1; begin < spaced.size();) {
    const size_t end = std::min(spaced.find(' ', begin), spaced.size());
    if (end > begin) encode_word(std::string_view(spaced).substr(begin, end - begin), out);
    begin = end + 1;
  }
}

}  // namespace cloze
