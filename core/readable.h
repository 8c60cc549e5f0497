#pragma once
// Messages of a length that a person reads.
#include <string>

namespace cloze {

/// A message whose words of more than a thousand bytes are cut like those of `shortened`, in which control characters
/// other than ends of lines, and bytes that are not UTF-8, are escapes, and which ends after some ten thousand bytes.
std::string readable(const std::string& message);

/// A text as a terminal or a log may show it: control characters other than ends of lines and tabs, and bytes that are
/// not UTF-8, are escapes. The colours of Cloze stay: `ESC [ 0 m` and those of 31 to 36.
std::string printable(const std::string& text);

}  // namespace cloze
