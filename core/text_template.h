#pragma once
// Texts with fields in braces: `{premise} so {choice}`, with {{ and }} for the braces themselves.
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A text between and around the fields that it joins.
struct TextTemplate {
  std::vector<std::string> between{""};  ///< before the first field, between fields, after the last one
  std::vector<std::string> fields{};
  /// A field as it is.
  bool is_field() const { return fields.size() == 1 && between[0].empty() && between[1].empty(); }
};

/// Reads a template. Throws ConfigError, which begins with `what`, for a brace without its other half or without a
/// field.
TextTemplate parse_template(std::string_view text, const std::string& what);

}  // namespace cloze
