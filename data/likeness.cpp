#include "data/likeness.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "data/line_reader.h"
#include "data/table_reader.h"
#include "data/text_lines.h"

namespace cloze {

namespace {

/// Whether a line begins with a text in lower case, whatever the case of its own letters.
bool begins_with(std::string_view line, std::string_view text) {
  const auto is_same = [](char given, char own) { return std::tolower(static_cast<unsigned char>(own)) == given; };
  return line.size() >= text.size() && std::equal(text.begin(), text.end(), line.begin(), is_same);
}

/// Whether a line begins with a tag or a comment of HTML or XML.
bool has_markup(std::string_view line) {
  return line.size() > 1 && line[0] == '<' &&
         (std::isalpha(static_cast<unsigned char>(line[1])) != 0 || std::string_view("/!?").find(line[1]) != line.npos);
}

/// What the first line of a file says that is no prose; empty where it says nothing.
std::string seems_to_begin(std::string_view line, const std::string& file) {
  if (line.starts_with("{\\rtf")) return "RTF";
  const auto next = line.substr(1);
  const bool is_list = line[0] == '[' && (is_blank(next) || std::string_view("{[\"").find(next[0]) != next.npos);
  const bool is_object = line[0] == '{' && !nlohmann::json::accept(line);  // a whole object is read as JSON lines
  if (is_list || is_object) return "JSON";
  if (begins_with(line, "<!doctype html") || begins_with(line, "<html")) return "HTML";
  return is_named_table(file) || std::count(line.begin(), line.end(), '\t') > 1 ? "a table" : "";
}

/// Whether a line is two columns. A speaker before the text, as in transcripts (`*MOT:`), is no column.
bool has_two_columns(std::string_view line) {
  const auto tab = line.find('\t');
  return tab != line.npos && line.find('\t', tab + 1) == line.npos && line[tab - 1] != ':';
}

/// Commas between the cells of a line, those in quotes not counted; none for a line that reads as a sentence: with a
/// space after a comma and a stop at its end.
int separating_commas(std::string_view line) {
  const bool is_sentence = line.find(", ") != line.npos && std::string_view(".!?").find(line.back()) != line.npos;
  int commas = 0;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    commas += c == ',' && !is_quoted ? 1 : 0;
  }
  return is_sentence ? 0 : commas;
}

/// Whether most lines have the same number of commas, two or more. `lines`: how many lines have each number of them.
bool are_rows(const std::map<int, int>& lines) {
  constexpr int enough = 8;
  int all = 0, rows = 0;
  for (const auto& [commas, count] : lines) {
    all += count;
    if (commas > 1) rows = std::max(rows, count);
  }
  return rows >= enough && 5 * rows >= 4 * all;
}

}  // namespace

Likeness likeness_of(const std::string& file) {
  constexpr int enough = 4, looked_at = 50;  // lines that are a table or markup, and lines to look at
  LineReader lines(file, LoneReturn::ends_line);
  std::string_view line;
  int seen = 0, columns = 0, markup = 0;
  bool is_markup = true;  // at least every other line so far
  std::map<int, int> with_commas;
  while (seen < looked_at && lines.next(line)) {
    if (is_blank(line)) continue;
    const auto text = without_white_space_around(line);
    if (seen == 0) {
      if (text.starts_with("<doc id=")) return {};
      if (auto kind = seems_to_begin(text, file); !kind.empty()) {
        const bool is_certain = kind != "a table" || is_named_table(file);
        return {std::move(kind), is_certain};
      }
    }
    ++seen;
    columns += has_two_columns(text) ? 1 : 0;
    markup += has_markup(text) ? 1 : 0;
    is_markup = is_markup && 2 * markup >= seen;
    ++with_commas[separating_commas(text)];
  }
  if (columns == seen && columns >= enough) return {"a table"};
  if (is_markup && markup >= enough) return {"HTML or XML"};
  return {are_rows(with_commas) ? "a table" : ""};
}

const char* way_out_of(const std::string& kind) {
  if (kind == "RTF") return "save it as plain text (UTF-8)";
  if (kind.starts_with("HTML")) return "extract its text with a program for that";
  return kind == "a table"
             ? "name the column of its text with --field (CSV, TSV), or read it as pairs with --format pairs"
             : "write its text as JSON lines, or as pairs with --format pairs";
}

}  // namespace cloze
