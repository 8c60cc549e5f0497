#pragma once
// The parts of byte-level BPE that its encoder and its trainer share.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cloze {

/// Calls `f` for each part of `text` that merges do not leave: 's, 't, 're, 've, 'm, 'll, 'd; letters, numbers or other
/// marks with one space before them; spaces. Source: openai/gpt-2, encoder.py, the pattern `pat`.
void each_pretoken(std::string_view text, const std::function<void(std::string_view)>& f);

/// The code point of the printable character that stands for a byte.
int32_t byte_code(uint8_t byte);

/// The printable character that stands for a byte.
std::string byte_symbol(uint8_t byte);

}  // namespace cloze
