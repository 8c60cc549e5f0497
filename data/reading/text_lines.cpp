#include "data/reading/text_lines.h"

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

size_t past_white_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t character = at;
    if (!is_white_space(next_code_point(text, at))) return character;
  }
  return text.size();
}

std::string_view without_white_space_after(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;  // inside a character
    size_t at = last;
    if (!is_white_space(next_code_point(text, at)) || at != text.size()) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string_view without_white_space_around(std::string_view text) {
  return without_white_space_after(text.substr(past_white_space(text)));
}

namespace {

/// Source: Unicode Character Database, property Default_Ignorable_Code_Point, beyond its controls.
bool is_ignorable(int32_t c) {
  const auto between = [c](int32_t first, int32_t last) { return c >= first && c <= last; };
  return c == 0x034F || between(0x115F, 0x1160) || between(0x17B4, 0x17B5) || between(0x180B, 0x180F) ||
         between(0x2060, 0x206F) || c == 0x2800 || c == 0x3164 || between(0xFE00, 0xFE0F) || c == 0xFFA0 ||
         between(0xE0000, 0xE0FFF);
}

}  // namespace

bool has_visible_text(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = next_code_point(text, at);
    if (!is_white_space(c) && !is_control(c) && !is_ignorable(c)) return true;
  }
  return false;
}

}  // namespace cloze
