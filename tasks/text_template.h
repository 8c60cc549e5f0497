#pragma once
// Texts that columns are joined to: `Question: {question} Answer: {answer}`.
#include <string>
#include <vector>

namespace cloze {

/// A text between and around the columns that it joins.
struct TextTemplate {
  std::vector<std::string> between{""};  ///< before the first column, between columns, after the last one
  std::vector<std::string> columns{};
  /// A column as it is.
  bool is_column() const { return columns.size() == 1 && between[0].empty() && between[1].empty(); }
};

/// Reads a template, or the name of a column, which has no braces; `key` has it. Throws ConfigError for braces that do
/// not pair, and for a template without a column.
TextTemplate parse_template(const std::string& text, const std::string& key);

}  // namespace cloze
