#include "study/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cloze {

namespace {

using nlohmann::json;
using Cells = std::vector<std::string>;

/// Characters of UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The text with each of `special` replaced by `with` it.
template <class With>
std::string escaped(const std::string& text, const std::string& special, const With& with) {
  std::string out;
  for (const char c : text) out += special.find(c) == std::string::npos ? std::string(1, c) : with(c);
  return out;
}

std::string latex_of(char c) {
  switch (c) {
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    case '\\':
      return "\\textbackslash{}";
    default:
      return std::string("\\") + c;
  }
}

std::string csv_of(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return "\"" + escaped(text, "\"", [](char) { return std::string("\"\""); }) + "\"";
}

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
    for (size_t i = 0; i < cells.size(); ++i) all += cells[i] + std::string(widths[i] - width_of(cells[i]) + 2, ' ');
    text += all.erase(all.find_last_not_of(' ') + 1) + "\n";
  };
  line(table.header);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string to_markdown(const Table& table) {
  const auto cell = [](const std::string& text) { return escaped(text, "|", [](char) { return std::string("\\|"); }); };
  std::string text = "## " + table.title + "\n\n| " + joined(table.header, " | ", cell) + " |\n|";
  for (size_t i = 0; i < table.header.size(); ++i) text += "---|";
  for (const auto& row : table.rows) text += "\n| " + joined(row, " | ", cell) + " |";
  return text + "\n";
}

std::string to_csv(const Table& table) {
  std::string text = "table," + joined(table.header, ",", csv_of) + "\n";
  for (const auto& row : table.rows) text += csv_of(table.title) + "," + joined(row, ",", csv_of) + "\n";
  return text;
}

std::string to_latex(const Table& table) {
  const auto cell = [](const std::string& text) {
    auto out = escaped(text, "&%$#_{}~^\\", latex_of);
    for (size_t at; (at = out.find("±")) != std::string::npos;) out.replace(at, std::string("±").size(), "$\\pm$");
    return out;
  };
  std::string text = words("% ", table.title, "\n\\begin{tabular}{", std::string(table.header.size(), 'l'),
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
