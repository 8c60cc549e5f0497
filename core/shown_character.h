#pragma once
// What of a text is shown as it is, on terminals and pages and in spreadsheets.
#include <cstddef>
#include <string>

namespace cloze {

/// Bytes of the character of UTF-8 that begins at `at`; 0 where none does, for one that controls a terminal, and for
/// one that hides or turns what follows (U+202E).
size_t bytes_of_character(const std::string& text, size_t at);

/// A cell between tabs, with spaces for its own and for ends of lines. As in CSV, what a spreadsheet would run as a
/// formula gets an apostrophe before it.
std::string escaped_tsv(const std::string& cell);
/// The text of such a cell.
std::string unescaped_tsv(const std::string& cell);

}  // namespace cloze
