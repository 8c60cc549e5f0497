#include "core/columns.h"

#include <algorithm>

namespace cloze {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The end of a colour, `ESC [ ... m`, that begins at `at`; `at` where none does.
size_t end_of_colour(const std::string& text, size_t at) {
  if (!text.substr(at, 2).starts_with("\033[")) return at;
  const auto last = text.find_first_not_of("0123456789;", at + 2);
  return last != std::string::npos && text[last] == 'm' ? last + 1 : at;
}

}  // namespace

size_t width_of(const std::string& text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const auto end = end_of_colour(text, at);
    if (end == at) width += begins_character(text[at]) ? 1 : 0;
    at = std::max(end, at + 1);
  }
  return width;
}

std::string cut(const std::string& text, size_t width) {
  size_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at)
    if (begins_character(text[at]) && seen++ == width) return text.substr(0, at);
  return text;
}

}  // namespace cloze
