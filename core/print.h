#pragma once
// Text for people: standard output, whose reader may be a terminal, and messages that can be read.
#include <string>

namespace cloze {

/// Writes text for people, such as a table with names from a file: `printable`. Throws Error if that fails.
void print_text(const std::string& text, bool at_once = false);

/// Writes text for programs, such as JSON, as it is; on a terminal `printable`. Throws Error if that fails.
void print_data(const std::string& text);

/// A message whose words of more than a thousand bytes are cut like those of `shortened`, in which control characters
/// other than ends of lines, and bytes that are not UTF-8, are escapes, and which ends after some ten thousand bytes.
std::string readable(const std::string& message);

/// A text as a terminal or a log may show it: control characters other than ends of lines and tabs, and bytes that are
/// not UTF-8, are escapes. The styles of Cloze stay: `ESC [ 0 m`, `1 m` and those of 31 to 36.
std::string printable(const std::string& text);

}  // namespace cloze
