#include "data/tokenizers/utf8.h"

#include <utf8proc.h>

#include <cstring>

namespace cloze {

int32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return ++at, byte;
  utf8proc_int32_t code = -1;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                  static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (n <= 0) return ++at, -1;
  at += static_cast<size_t>(n);
  return code;
}

void append_code_point(std::string& out, int32_t code) {
  utf8proc_uint8_t encoded[4];
  const auto n = utf8proc_encode_char(code, encoded);
  out.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(n));
}

size_t find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word = 0;
    if (at + 8 <= text.size() && (std::memcpy(&word, text.data() + at, 8), (word & 0x8080808080808080) == 0)) {
      at += 8;
      continue;
    }
    const size_t start = at;
    if (next_code_point(text, at) < 0) return start;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text, uint64_t& count) {
  std::string out;
  bool in_run = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const bool valid = next_code_point(text, at) >= 0;
    if (valid) {
      out.append(text.substr(start, at - start));
    } else if (!in_run) {
      append_code_point(out, 0xFFFD);
      ++count;
    }
    in_run = !valid;
  }
  return out;
}

}  // namespace cloze
