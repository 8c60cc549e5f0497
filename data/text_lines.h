#pragma once
// What every format asks of a line of text.
#include <string>
#include <string_view>

#include "core/error.h"

namespace cloze {

/// True for a line of white space alone.
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\f\v\r") == std::string_view::npos; }

/// Throws DataError for a NUL, which strings of JSON may contain, unlike lines of a file.
inline void require_no_nul(const std::string& text, const std::string& where) {
  require<DataError>(text.find('\0') == std::string::npos, where, ": the text contains a NUL; remove it");
}

}  // namespace cloze
