#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/shown_character.h"

namespace cloze {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The end of a colour, `ESC [ ... m`, that begins at `at`; `at` where none does.
size_t end_of_colour(const std::string& text, size_t at) {
  if (!text.substr(at, 2).starts_with("\033[")) return at;
  const auto last = text.find_first_not_of("0123456789;", at + 2);
  return last != std::string::npos && text[last] == 'm' ? last + 1 : at;
}

/// The spaces that a text lacks to a width.
std::string missing(const std::string& text, size_t width) {
  const auto has = width_of(text);
  return std::string(width > has ? width - has : 0, ' ');
}

std::string latex_of(char c) {
  switch (c) {
    case '&':
    case '%':
    case '$':
    case '#':
    case '_':
    case '{':
    case '}':
      return std::string("\\") + c;
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    case '\\':
      return "\\textbackslash{}";
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    case '"':
      return "\\textquotedbl{}";
    default:
      return std::string(1, c);
  }
}

std::string markdown_of(char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '\\':
    case '`':
    case '*':
    case '_':
    case '[':
    case ']':
    case '|':
    case '#':
    case '~':
      return std::string("\\") + c;
    default:
      return std::string(1, c);
  }
}

/// A number as printf writes it, whatever the locale.
std::string number_text(double value, std::chars_format format, int precision) {
  char text[512];  // the longest number has 309 digits before its point
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, format, std::clamp(precision, 0, 100));
  return {text, end};
}

/// Whether a text is a number as programs write it, with a sign or without.
bool is_plain_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

size_t width_of(const std::string& text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const auto end = end_of_colour(text, at);
    if (end == at) width += begins_character(text[at]) ? 1 : 0;
    at = std::max(end, at + 1);
  }
  return width;
}

std::string cut(const std::string& text, size_t width) {
  size_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at)
    if (begins_character(text[at]) && seen++ == width) return text.substr(0, at);
  return text;
}

std::string padded(const std::string& text, size_t width) { return text + missing(text, width); }

std::string aligned_right(const std::string& text, size_t width) { return missing(text, width) + text; }

std::string wrapped(const std::string& head, const std::string& text, int64_t columns, size_t indent) {
  std::string lines, line = head;
  bool is_empty = true;  // of words
  for (size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
    at = end + 1;
    if (!is_empty && static_cast<int64_t>(width_of(line) + 1 + width_of(word)) > columns) {
      lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(indent, ' ') + word;
      is_empty = word.empty();  // spaces at a break are dropped
    } else {
      line += (is_empty ? "" : " ") + word;
      is_empty = is_empty && word.empty() && !lines.empty();
    }
  }
  return lines + line + "\n";
}

std::string wrapped_lines(const std::string& head, const std::string& text, int64_t columns, size_t indent) {
  std::string lines;
  for (const auto& line : separated(text, "\n")) lines += wrapped(lines.empty() ? head : "", line, columns, indent);
  lines.pop_back();
  return lines;
}

std::vector<std::string> separated(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

std::string digits(double value, int count) { return number_text(value, std::chars_format::general, count); }

std::string fixed(double value, int decimals, bool sign) {
  const auto text = number_text(value, std::chars_format::fixed, decimals);
  return (sign && !std::signbit(value) ? "+" : "") + text;
}

std::string thousands(uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  char text[48];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ldh%02ldm", static_cast<long>(s / 3600), static_cast<long>(s / 60 % 60));
  else if (s >= 60)
    std::snprintf(text, sizeof text, "%ldm%02lds", static_cast<long>(s / 60), static_cast<long>(s % 60));
  else if (seconds >= 9.95 || seconds == 0)
    std::snprintf(text, sizeof text, "%lds", static_cast<long>(s));
  else
    std::snprintf(text, sizeof text, "%.1fs", seconds);
  return text;
}

std::string bytes(double n) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (n >= 999.5 && unit < 4) {
    n /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || n >= 99.5 ? "%.0f %s" : "%.1f %s", n, units[unit]);
  return text;
}

std::string significant(double value, int digits) {
  const double size = std::abs(value);
  const bool is_integer = size >= std::pow(10, digits - 1) && size < 1e15;
  char text[32];
  if (is_integer)
    std::snprintf(text, sizeof text, "%.0f", value);
  else
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string with_prefix(double value) {
  const char* prefixes[] = {"", " k", " M", " G", " T", " P"};
  int prefix = 0;
  for (; std::abs(value) >= 999.5 && prefix < 5; ++prefix)
    value /= 1000;  // 1000 after rounding is 1 of the next prefix
  return significant(value, 3) + prefixes[prefix];
}

std::string in_percent(double fraction) { return significant(100 * fraction, 4) + " %"; }

std::string counted(uint64_t n, std::string_view noun) {
  return thousands(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string in_one_line(const std::string& text) {
  auto line = text;
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return line;
}

namespace {

/// Whether a spreadsheet would run a cell as a formula.
bool is_formula(const std::string& cell) {
  return cell.size() > 1 && std::string_view("=+-@\t\r").find(cell[0]) != std::string_view::npos &&
         !is_plain_number(cell);
}

}  // namespace

std::string escaped_tsv(const std::string& cell) {
  const auto line = in_one_line(cell);
  return is_formula(line) ? "'" + line : line;
}

std::string unescaped_tsv(const std::string& cell) {
  return cell.starts_with('\'') && is_formula(cell.substr(1)) ? cell.substr(1) : cell;
}

std::string escaped_csv(const std::string& cell, char separator) {
  const auto text = is_formula(cell) ? "'" + cell : cell;
  if (text.find_first_of(std::string("\"\r\n") + separator) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

namespace {

/// A text in one line, with U+FFFD for bytes that are not UTF-8 and for characters that hide or turn what follows.
std::string plain_line(const std::string& text) {
  std::string line;
  bool is_inside = false;  // of a character that is not shown
  for (size_t at = 0; at < text.size();) {
    const auto bytes = bytes_of_character(text, at);
    const bool is_control = static_cast<unsigned char>(text[at]) < 0x20 || text[at] == 0x7F;
    const bool is_other = bytes == 0 && !is_control;
    if (bytes > 0)
      line.append(text, at, bytes);
    else if (is_control || begins_character(text[at]) || !is_inside)
      line += is_control ? " " : "\uFFFD";
    is_inside = is_other;
    at += std::max<size_t>(bytes, 1);
  }
  return line;
}

}  // namespace

std::string escaped_latex(const std::string& text) {
  std::string out;
  for (const char c : plain_line(text)) out += latex_of(c);
  // After the end of a row, \\ and \midrule would take these for their own: [1ex] and *.
  if (!out.empty() && (out[0] == '[' || out[0] == '*')) out = "{" + out.substr(0, 1) + "}" + out.substr(1);
  return out;
}

std::string escaped_markdown(const std::string& text) {
  std::string out;
  for (const char c : plain_line(text)) out += markdown_of(c);
  return out;
}

std::string escaped_html(const std::string& text) {
  std::string out;
  for (const char c : plain_line(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

}  // namespace cloze
