#pragma once
// UTF-8 decoding, validation and repair.
#include <cstdint>
#include <string>
#include <string_view>

namespace cloze {

/// Decodes one code point at `at` and advances; -1 for an invalid byte, which is skipped.
int32_t next_code_point(std::string_view text, size_t& at);
void append_code_point(std::string& out, int32_t code);
/// Offset of the first invalid byte, or npos.
size_t find_invalid_utf8(std::string_view text);
/// The text with every run of invalid bytes replaced by U+FFFD; adds the number of runs to `count`.
std::string replace_invalid_utf8(std::string_view text, uint64_t& count);

}  // namespace cloze
