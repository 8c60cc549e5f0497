#pragma once
// What every format asks of a line of text.
#include <string>
#include <string_view>

#include "core/error.h"

namespace cloze {

/// Offset of the first character at or after `at` that is no white space, of whatever script; the size for none.
size_t past_white_space(std::string_view text, size_t at = 0);

/// A text without the white space after it.
std::string_view without_white_space_after(std::string_view text);

/// A text without the white space around it.
std::string_view without_white_space_around(std::string_view text);

/// True for a line of white space alone.
inline bool is_blank(std::string_view line) { return past_white_space(line) == line.size(); }

/// Whether a text has a character that shows something: no white space, control, joiner, filler or variation selector.
bool has_visible_text(std::string_view text);

/// Throws DataError for a NUL, which strings of JSON may contain, unlike lines of a file.
inline void require_no_nul(std::string_view text, const std::string& where) {
  require<DataError>(text.find('\0') == text.npos, where, ": the text contains a NUL; remove it");
}

}  // namespace cloze
