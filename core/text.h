#pragma once
// Text of reports: columns, paragraphs, escapes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace cloze {

/// Characters of a text of UTF-8, each of which takes a column of a terminal. Colours (`ESC [ ... m`) take none.
size_t width_of(const std::string& text);

/// The first `width` characters of a text.
std::string cut(const std::string& text, size_t width);

/// A text with spaces after it, or before it, up to a width; longer ones stay as they are.
std::string padded(const std::string& text, size_t width);
std::string aligned_right(const std::string& text, size_t width);

/// `head`, whose spaces stay, and a paragraph after it, in lines of at most `columns`; all but the first are indented.
/// Spaces at a break are dropped.
std::string wrapped(const std::string& head, const std::string& text, int64_t columns, size_t indent);

/// As `wrapped` for each line of a text, the first of them after `head`; without the last line break.
std::string wrapped_lines(const std::string& head, const std::string& text, int64_t columns, size_t indent);

/// A number with so many significant digits, or with so many decimals; `sign`: also a plus.
std::string digits(double value, int count);
std::string fixed(double value, int decimals, bool sign = false);

/// What stands in a text between separators, and before the first and after the last; of a text without one all of it.
std::vector<std::string> separated(std::string_view text, std::string_view separator);

/// `1234567` -> `1,234,567`.
std::string thousands(uint64_t n);
/// A number of seconds as `3h12m`, `4m05s`, `12s`.
std::string duration(double seconds);
/// A number of bytes as `12.3 MB`.
std::string bytes(double n);
/// A number with `digits` significant digits; integer parts of up to 15 digits are complete, without an exponent.
std::string significant(double value, int digits);
/// A number with three significant digits and an SI prefix: `999700` -> `1 M`.
std::string with_prefix(double value);
/// `0.155` -> `15.5 %`, with four significant digits.
std::string in_percent(double fraction);

/// A number of things, `1 document` and `7,201 documents`; `noun`: of one, whose plural has an s.
std::string counted(uint64_t n, std::string_view noun);

/// Replaces every `from`, unless it is empty, from left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// A text in one line: control characters become spaces.
std::string in_one_line(const std::string& text);

/// Names in one line, `a, b, c`; with a last word `a, b or c`.
template <class Names>
std::string listed(const Names& names, std::string_view last = "") {
  std::string text;
  size_t left = names.size();
  for (const auto& name : names) {
    --left;
    if (!text.empty()) text += left == 0 && !last.empty() ? " " + std::string(last) + " " : ", ";
    text += name;
  }
  return text;
}

/// A cell of a CSV file, quoted where it needs to be. Text that a spreadsheet would run as a formula, because it begins
/// with `=`, `+`, `-`, `@`, a tab or a carriage return, gets an apostrophe before it; numbers stay.
/// Source: OWASP, "CSV Injection".
std::string escaped_csv(const std::string& cell, char separator = ',');

/// A text as LaTeX typesets it, also at the beginning of a row of a table.
std::string escaped_latex(const std::string& text);

/// A text as Markdown shows it, also in a cell of a table.
std::string escaped_markdown(const std::string& text);

/// A text as HTML and XML show it, also between quotes. Control characters become spaces.
std::string escaped_html(const std::string& text);

/// The first few of a list: `a, b, c and 4 more`.
inline std::string first_few(const std::vector<std::string>& all, std::string_view between = ", ") {
  constexpr size_t most = 3;
  std::string list;
  for (size_t i = 0; i < std::min(all.size(), most); ++i) list += (i > 0 ? std::string(between) : "") + all[i];
  return all.size() > most ? concat(list, " and ", all.size() - most, " more") : list;
}

}  // namespace cloze
