#pragma once
// JSON from untrusted sources.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cloze {

/// Maximum nesting depth of lists and objects; no file of Cloze or Hugging Face reaches ten.
constexpr size_t max_json_depth = 64;

/// The offset at which a JSON text is nested deeper than `max_depth`, or npos. A value nested thousands deep can be
/// parsed, but copying and dumping it recurse.
size_t too_deep(std::string_view text, size_t max_depth = max_json_depth);

/// The value of a JSON text; a discarded one if it is not JSON or nested deeper than `max_json_depth`.
nlohmann::json parse_json(std::string_view text);

/// The same of a line of JSON lines. Throws DataError with `where` for an object that has a key twice, of which JSON
/// leaves open which value counts.
nlohmann::json parse_json_line(std::string_view line, const std::string& where);

/// Whether a name ends in `.jsonl`, `.jsonl.gz` or `.jsonl.xz`.
bool is_json_lines(const std::string& name);

/// Why `parse_json` discards a text, as part of a message: ` (line 3, column 7: ...)`. Empty for valid text.
std::string json_fault(std::string_view text);

/// The same of a line of JSON lines, whose number its message has: ` (column 7: ...)`.
std::string json_line_fault(std::string_view line);

}  // namespace cloze
