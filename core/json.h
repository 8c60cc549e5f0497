#pragma once
// The one reader of JSON, which bounds what it takes from untrusted sources, and the one writer.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cloze {

/// Maximum nesting depth of lists and objects; no file of Cloze or Hugging Face reaches ten.
constexpr size_t max_json_depth = 64;

/// Maximum size of a JSON text [bytes], and of the number of its values and keys: what the largest tokenizers and logs
/// have many times over, and what memory has room for.
constexpr size_t max_json_bytes = size_t{256} << 20, max_json_values = 20'000'000;

/// The offset at which a JSON text is nested deeper than `max_depth`, or npos. A value nested thousands deep can be
/// parsed, but copying and dumping it recurse.
size_t too_deep(std::string_view text, size_t max_depth = max_json_depth);

/// The value of a JSON text; a discarded one if it is not JSON, nested deeper than `max_json_depth`, or larger than
/// `max_json_bytes` or `max_json_values`.
nlohmann::json parse_json(std::string_view text);

/// The same, with keys in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// The same of a line of JSON lines. Throws DataError with `where` for an object that has a key twice, of which JSON
/// leaves open which value counts.
nlohmann::json parse_json_line(std::string_view line, const std::string& where);

/// The value at a JSON pointer; null where there is none. Source: RFC 6901.
nlohmann::json value_at(const nlohmann::json& value, const char* pointer);

/// The text at a JSON pointer; empty where there is none.
std::string string_at(const nlohmann::json& value, const char* pointer);

/// A value as JSON, in one line or, with an indent, in many. What is not UTF-8, as names of files may be, becomes
/// U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Whether a name ends in `.jsonl`, `.jsonl.gz` or `.jsonl.xz`.
bool is_json_lines(const std::string& name);

/// Why `parse_json` discards a text, as part of a message: ` (line 3, column 7: ...)`. Empty for valid text.
std::string json_fault(std::string_view text);

/// The same of a line of JSON lines, whose number its message has: ` (column 7: ...)`.
std::string json_line_fault(std::string_view line);

}  // namespace cloze
