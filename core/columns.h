#pragma once
// Columns that a text takes on a terminal or in a table: one for each character of UTF-8.
#include <cstddef>
#include <string>

namespace cloze {

/// Characters of a text. Colours (`ESC [ ... m`) take no column.
size_t width_of(const std::string& text);

/// The first `width` characters of a text.
std::string cut(const std::string& text, size_t width);

}  // namespace cloze
