#pragma once
// Messages of a length that a person reads.
#include <string>

namespace cloze {

/// A message whose words of more than a thousand bytes are cut like those of `shortened`, whose control characters
/// other than ends of lines are escapes, and which itself ends after some ten thousand bytes.
std::string readable(const std::string& message);

}  // namespace cloze
