#pragma once
// Standard output, whose reader may be a terminal.
#include <string>

namespace cloze {

/// Writes text for people, such as a table with names from a file: `printable`. Throws Error if that fails.
void print_text(const std::string& text, bool at_once = false);

/// Writes text for programs, such as JSON, as it is; on a terminal `printable`. Throws Error if that fails.
void print_data(const std::string& text);

}  // namespace cloze
