#pragma once
// Parts of byte-level BPE shared by the tokenizer model and its trainer.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cloze {

/// Calls `f` for each pre-token of `text`, which merges do not cross: 's, 't, 're, 've, 'm, 'll, 'd; runs of letters,
/// numbers or other characters with one space before them; spaces. Source: openai/gpt-2, encoder.py, the pattern `pat`.
void each_pretoken(std::string_view text, const std::function<void(std::string_view)>& f);

/// The code point of the printable character that represents a byte.
int32_t byte_code(uint8_t byte);

/// The printable character that represents a byte.
std::string byte_symbol(uint8_t byte);

}  // namespace cloze
