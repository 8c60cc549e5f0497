#include "core/columns.h"

#include <algorithm>

namespace cloze {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut(const std::string& text, size_t width) {
  size_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at)
    if (begins_character(text[at]) && seen++ == width) return text.substr(0, at);
  return text;
}

}  // namespace cloze
