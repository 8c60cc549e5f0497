#pragma once
// JSON whose texts are not whole Unicode.
#include <string>
#include <string_view>

namespace cloze {

/// A text of JSON in which every run of bytes that are not UTF-8, and every escaped half of a character without its
/// other half (a lone surrogate, `\ud83d`), is U+FFFD; empty where there is none.
std::string with_whole_characters(std::string_view json);

}  // namespace cloze
