#pragma once
// Short names of long texts.
#include <xxhash.h>

#include <cstdio>
#include <string>

namespace cloze {

/// XXH3 of a text, 16 hexadecimal digits.
inline std::string hash_hex(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

}  // namespace cloze
