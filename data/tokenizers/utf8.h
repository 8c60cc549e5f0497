#pragma once
// UTF-8 by code points, with what is invalid found and mended.
#include <cstdint>
#include <string>
#include <string_view>

namespace cloze {

/// Decodes one code point at `at` and moves past it; -1 for an invalid byte, which it moves past as well.
int32_t next_code_point(std::string_view text, size_t& at);
void append_code_point(std::string& out, int32_t code);
/// Offset of the first invalid byte, or npos.
size_t find_invalid_utf8(std::string_view text);
/// The text with every run that cannot be decoded replaced by U+FFFD; adds their number to `count`.
std::string replace_invalid_utf8(std::string_view text, uint64_t& count);

}  // namespace cloze
