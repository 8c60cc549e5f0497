#include "data/json_repair.h"

#include <cctype>
#include <cstdint>

#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

constexpr size_t escape_size = 6;  // of \\uXXXX

/// The code unit of an escape at `at`, or -1.
int32_t escaped_unit(std::string_view json, size_t at) {
  const auto escape = json.substr(at, escape_size);
  if (escape.size() < escape_size || escape[0] != '\\' || escape[1] != 'u') return -1;
  int32_t unit = 0;
  for (const char digit : escape.substr(2)) {
    const auto c = static_cast<unsigned char>(digit);
    if (std::isxdigit(c) == 0) return -1;
    unit = 16 * unit + (std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10);
  }
  return unit;
}

bool is_high(int32_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low(int32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

std::string with_whole_characters(std::string_view json) {
  uint64_t replaced = 0;
  const auto valid = replace_invalid_utf8(json, replaced);
  std::string out;
  for (size_t at = 0; at < valid.size();) {
    const auto unit = escaped_unit(valid, at);
    size_t size = valid[at] == '\\' ? 2 : 1;  // an escaped backslash escapes nothing
    if (unit >= 0)
      size = is_high(unit) && is_low(escaped_unit(valid, at + escape_size)) ? 2 * escape_size : escape_size;
    const bool is_half = size == escape_size && (is_high(unit) || is_low(unit));
    out += is_half ? "\\ufffd" : valid.substr(at, size);
    replaced += is_half ? 1 : 0;
    at += size;
  }
  return replaced > 0 ? out : "";
}

}  // namespace cloze
