#include "core/table.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/columns.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

using nlohmann::json;
using Cells = std::vector<std::string>;

/// Each row's cells, joined.
template <class Cell>
std::string joined(const Cells& cells, const char* joint, const Cell& cell) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? joint : "") + cell(cells[i]);
  return text;
}

/// A cell in the escapes of a format that drops the spaces at its beginning: `step` stands for every two of them.
template <class Escaped>
std::string indented(const std::string& text, const char* step, const Escaped& escaped) {
  const auto indent = std::min(text.find_first_not_of(' '), text.size());
  std::string out;
  for (size_t i = 0; i < indent; i += 2) out += step;
  return out + escaped(text.substr(indent));
}

std::string markdown_cell(const std::string& text) { return indented(text, "&nbsp;&nbsp;", escaped_markdown); }

/// Numbers have a minus, not a hyphen.
std::string latex_number(const std::string& text) {
  auto out = escaped_latex(text);
  if (out.size() > 1 && out[0] == '-' && std::isdigit(static_cast<unsigned char>(out[1]))) out.replace(0, 1, "$-$");
  for (size_t at; (at = out.find("±")) != std::string::npos;) out.replace(at, std::string("±").size(), "$\\pm$");
  return out;
}

std::string latex_cell(const std::string& text) { return indented(text, "\\quad ", latex_number); }

}  // namespace

std::string to_text(const Table& table) {
  std::vector<Cells> rows{table.header};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::vector<size_t> widths(table.header.size());
  for (auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = visible(row[i]);  // names come from files of users
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  std::string text = table.title.empty() ? "" : visible(table.title) + "\n\n";
  const auto line = [&](const Cells& cells) {
    std::string all;
    for (size_t i = 0; i < cells.size(); ++i)
      all += (table.of_numbers && i > 0 ? aligned_right : padded)(cells[i], widths[i]) + "  ";
    text += all.erase(all.find_last_not_of(' ') + 1) + "\n";
  };
  for (const auto& row : rows) line(row);
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text =
      "## " + escaped_markdown(table.title) + "\n\n| " + joined(table.header, " | ", markdown_cell) + " |\n|";
  for (size_t i = 0; i < table.header.size(); ++i) text += table.of_numbers && i > 0 ? "--:|" : "---|";
  for (const auto& row : table.rows) text += "\n| " + joined(row, " | ", markdown_cell) + " |";
  return text + "\n";
}

std::string to_latex(const Table& table) {
  const auto columns = "l" + std::string(table.header.size() - 1, table.of_numbers ? 'r' : 'l');
  std::string text = words("% ", in_one_line(table.title), "\n\\begin{tabular}{", columns, "}\n\\toprule\n",
                           joined(table.header, " & ", latex_cell), " \\\\\n\\midrule\n");
  for (const auto& row : table.rows) text += joined(row, " & ", latex_cell) + " \\\\\n";
  return text + "\\bottomrule\n\\end{tabular}\n";
}

json to_json(const Table& table) {
  json rows = json::array();
  for (const auto& row : table.rows) {
    auto& one = rows.emplace_back(json::object());
    for (size_t i = 0; i < row.size(); ++i) one[table.header[i]] = row[i];
  }
  return {{"title", table.title}, {"rows", rows}};
}

}  // namespace cloze
