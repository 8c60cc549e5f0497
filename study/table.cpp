#include "study/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/columns.h"
#include "core/error.h"
#include "study/text.h"

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

}  // namespace

std::string to_text(const Table& table) {
  std::vector<size_t> widths;
  for (const auto& head : table.header) widths.push_back(width_of(head));
  for (const auto& row : table.rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text = table.title + "\n\n";
  const auto line = [&](const Cells& cells) {
    std::string all;
    for (size_t i = 0; i < cells.size(); ++i) all += padded(cells[i], widths[i] + 2);
    text += all.erase(all.find_last_not_of(' ') + 1) + "\n";
  };
  line(table.header);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text =
      "## " + escaped_markdown(table.title) + "\n\n| " + joined(table.header, " | ", escaped_markdown) + " |\n|";
  for (size_t i = 0; i < table.header.size(); ++i) text += "---|";
  for (const auto& row : table.rows) text += "\n| " + joined(row, " | ", escaped_markdown) + " |";
  return text + "\n";
}

std::string to_latex(const Table& table) {
  const auto cell = [](const std::string& text) {
    auto out = escaped_latex(text);
    for (size_t at; (at = out.find("±")) != std::string::npos;) out.replace(at, std::string("±").size(), "$\\pm$");
    return out;
  };
  std::string text = words("% ", in_one_line(table.title), "\n\\begin{tabular}{", std::string(table.header.size(), 'l'),
                           "}\n\\toprule\n", joined(table.header, " & ", cell), " \\\\\n\\midrule\n");
  for (const auto& row : table.rows) text += joined(row, " & ", cell) + " \\\\\n";
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
