#pragma once
// JSON that others may have written.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cloze {

/// Lists and objects within each other that are read; no file of ours or of Hugging Face's has ten.
constexpr size_t deepest_json = 64;

/// The byte at which a JSON text is nested deeper than `most`, or npos. A value nested thousands deep is parsed well,
/// but its copy and its text are made by recursion.
size_t too_deep(std::string_view text, size_t most = deepest_json);

/// The value of a JSON text; a discarded one for text that is no JSON or is nested deeper than `deepest_json`.
nlohmann::json parse_json(std::string_view text);

/// Why `parse_json` discards a text, to stand in a sentence: ` (line 3, column 7: ...)`. Empty for one that it takes.
std::string json_fault(std::string_view text);

}  // namespace cloze
