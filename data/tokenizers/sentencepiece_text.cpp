#include "data/tokenizers/sentencepiece.h"

#include <utf8proc.h>

#include <algorithm>

#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// White space by Python's str.split().
bool is_python_space(int32_t c) {
  if ((c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85) return true;
  if (c < 0x80) return false;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/// True for a capital sigma that ends a word, between `before` and `after`: it becomes a final sigma
/// (SpecialCasing.txt, Final_Sigma); marks between letters are ignored.
bool is_final_sigma(std::string_view before, std::string_view after) {
  const auto letter = [](int32_t l) { return l >= 0 && (utf8proc_tolower(l) != l || utf8proc_toupper(l) != l); };
  const auto mark = [](int32_t l) {
    return l == '\'' || l == 0xB7 || (l >= 0 && utf8proc_category(l) == UTF8PROC_CATEGORY_MN);
  };
  int32_t last = -1, next = -1;
  for (size_t at = before.size(); at > 0;) {
    do --at;
    while (at > 0 && (before[at] & 0xC0) == 0x80);
    size_t end = at;
    last = next_code_point(before, end);
    if (!mark(last)) break;
  }
  for (size_t at = 0; at < after.size();) {
    next = next_code_point(after, at);
    if (!mark(next)) break;
  }
  return letter(last) && !letter(next);
}

/// Appends the lower case of a code point, as Python's str.lower(), between `before` and `after`.
void append_lower(std::string& out, int32_t c, std::string_view before, std::string_view after) {
  if (c == 0x130) {  // the only letter whose lower case has two code points
    out += "i\u0307";
  } else if (c == 0x3A3) {
    append_code_point(out, is_final_sigma(before, after) ? 0x3C2 : 0x3C3);
  } else {
    append_code_point(out, utf8proc_tolower(c));
  }
}

/// Appends a code point, without accents and in lower case if the rules say so; `after`: the text that follows it.
void append_prepared(const SentencePieceRules& rules, int32_t c, std::string_view after, std::string& out) {
  utf8proc_int32_t parts[32] = {c < 0 ? 0xFFFD : c};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  const auto count = rules.strip_accents ? std::min<utf8proc_ssize_t>(
                                               utf8proc_decompose_char(parts[0], parts, 32, options, nullptr), 32)
                                         : 1;
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    if (rules.strip_accents && utf8proc_get_property(parts[i])->combining_class != 0) continue;
    if (rules.lowercase)
      append_lower(out, parts[i], out, after);
    else
      append_code_point(out, parts[i]);
  }
}

}  // namespace

std::string prepared(const SentencePieceRules& rules, std::string_view text, std::vector<uint32_t>* sources) {
  std::string out;
  bool spaced = false;
  uint32_t space_at = 0;
  for (size_t at = 0; at < text.size();) {
    const auto from = static_cast<uint32_t>(at);
    int32_t c = next_code_point(text, at);
    if (rules.join_spaces && c >= 0 && is_python_space(c)) {
      if (!spaced) space_at = from;
      spaced = !out.empty();
      continue;
    }
    if (spaced) out += ' ';
    if (spaced && sources) sources->resize(out.size(), space_at);
    spaced = false;
    if (rules.split_digit_commas && (c == '`' || c == '\'') && at < text.size() && text[at] == static_cast<char>(c)) {
      ++at;
      c = '"';
    }
    append_prepared(rules, c, text.substr(at), out);
    if (sources) sources->resize(out.size(), from);
  }
  return out;
}

bool ends_with_digit_comma(std::string_view piece) {
  if (piece.size() < 2 || piece.back() != ',') return false;
  size_t at = piece.size() - 2;
  while (at > 0 && (piece[at] & 0xC0) == 0x80) --at;
  return utf8proc_category(next_code_point(piece, at)) == UTF8PROC_CATEGORY_ND;
}

}  // namespace cloze
