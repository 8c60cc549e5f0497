#include "core/report/table.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

using nlohmann::json;

bool is_number(const TableColumn& column) { return column.kind == ColumnKind::number; }

/// The cells of a row from `first` on, each written by `cell(text, column)` and joined.
template <class Cell>
std::string joined(const Table& table, const std::vector<std::string>& row, const char* joint, const Cell& cell,
                   size_t first = 0) {
  std::string text;
  for (size_t i = first; i < row.size(); ++i) text += (i > first ? joint : "") + cell(row[i], table.header[i]);
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

/// The lines of a cell, each written by `line`, and joined.
template <class Line>
std::string of_lines(const std::string& text, const char* joint, const Line& line) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    all += (at > 0 ? joint : "") + line(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

/// Code that may contain backticks.
std::string markdown_code(const std::string& text) {
  size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`'), space = longest > 0 ? " " : "";
  auto code = in_one_line(text);
  replace_all(code, "|", "\\|");
  return fence + space + code + space + fence;
}

std::string markdown_cell(const std::string& text, const TableColumn& column) {
  return column.kind == ColumnKind::code ? of_lines(text, ", ", markdown_code)
                                         : indented(text, "&nbsp;&nbsp;", escaped_markdown);
}

/// Numbers have a minus, not a hyphen, also in intervals.
std::string latex_number(const std::string& text) {
  auto out = escaped_latex(text);
  const auto is_digit = [&](size_t at) { return at < out.size() && std::isdigit(static_cast<unsigned char>(out[at])); };
  for (size_t at = 0; (at = out.find('-', at)) != std::string::npos; ++at) {
    const bool begins = at == 0 || out[at - 1] == '[' || out[at - 1] == '}' || out[at - 1] == ' ';
    if (begins && is_digit(at + 1)) out.replace(at, 1, "$-$");
  }
  replace_all(out, "±", "$\\pm$");
  return out;
}

std::string latex_cell(const std::string& text, const TableColumn&) { return indented(text, "\\quad ", latex_number); }

std::string html_cell(const std::string& text, const TableColumn& column) {
  switch (column.kind) {
    case ColumnKind::text:
      return "<td>" + escaped_html(text) + "</td>";
    case ColumnKind::sentence:
      return "<td class=\"wide\">" + escaped_html(text) + "</td>";
    case ColumnKind::code:
      return "<td class=\"wide\">" +
             of_lines(text, "<br>", [](const auto& line) { return "<code>" + escaped_html(line) + "</code>"; }) +
             "</td>";
    case ColumnKind::number:
      break;
  }
  auto number = escaped_html(text);
  if (text.size() > 1 || text != "-") replace_all(number, "-", "−");
  return "<td class=\"n\">" + number + "</td>";
}

}  // namespace

std::vector<std::string> heads_of(const Table& table) {
  std::vector<std::string> heads;
  for (const auto& column : table.header) heads.push_back(column.name);
  return heads;
}

std::vector<TableColumn> columns_of_numbers(std::vector<std::string> names) {
  std::vector<TableColumn> columns;
  for (auto& name : names)
    columns.emplace_back(std::move(name), columns.empty() ? ColumnKind::text : ColumnKind::number);
  return columns;
}

void drop_empty_columns(Table& table) {
  if (table.rows.empty()) return;
  for (size_t k = table.header.size(); k-- > 0;) {
    const auto is_empty = [&](const auto& row) { return row[k].empty(); };
    if (!std::all_of(table.rows.begin(), table.rows.end(), is_empty)) continue;
    const auto at = static_cast<std::ptrdiff_t>(k);
    table.header.erase(table.header.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
}

size_t width_of(const Table& table) {
  size_t sum = 0, last = 0;
  for (size_t k = 0; k < table.header.size(); ++k) {
    size_t widest = width_of(visible(table.header[k].name));
    for (const auto& row : table.rows) widest = std::max(widest, width_of(visible(row[k])));
    sum += last;
    last = widest + 2;
  }
  return sum + std::max<size_t>(last, 2) - 2;
}

std::string to_text(Table table, size_t columns) {
  std::string below;
  while (width_of(table) > columns) {
    const auto column = std::ranges::max_element(table.header, {}, &TableColumn::rank);
    if (column->rank == 0) break;
    const auto at = column - table.header.begin();
    if (column->kind == ColumnKind::sentence)
      for (const auto& row : table.rows)
        below += wrapped("", visible(row[0]) + ": " + visible(row[static_cast<size_t>(at)]),
                         static_cast<int64_t>(columns), 2);
    table.header.erase(column);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  auto rows = table.rows;
  rows.insert(rows.begin(), heads_of(table));
  std::vector<size_t> widths(table.header.size());
  for (auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = visible(row[i]);  // names come from files of users
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  std::string text = table.title.empty() ? "" : visible(table.title) + "\n\n";
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += (is_number(table.header[i]) ? aligned_right : padded)(row[i], widths[i]) + "  ";
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + (below.empty() ? "" : "\n" + below);
}

std::string to_markdown(const Table& table) {
  std::string text = table.title.empty() ? "" : "## " + escaped_markdown(table.title) + "\n\n";
  const auto head = [](const std::string& name, const TableColumn&) { return escaped_markdown(name); };
  text += "| " + joined(table, heads_of(table), " | ", head) + " |\n|";
  for (const auto& column : table.header) text += is_number(column) ? "--:|" : "---|";
  for (const auto& row : table.rows) text += "\n| " + joined(table, row, " | ", markdown_cell) + " |";
  return text + "\n";
}

std::string to_latex(const Table& table) {
  std::string columns;
  for (const auto& column : table.header) columns += is_number(column) ? 'r' : 'l';
  auto text = concat("\\begin{tabular}{", columns, "}\n\\toprule\n", joined(table, heads_of(table), " & ", latex_cell),
                     " \\\\\n\\midrule\n");
  for (const auto& row : table.rows) text += joined(table, row, " & ", latex_cell) + " \\\\\n";
  text += "\\bottomrule\n\\end{tabular}\n";
  if (table.caption.empty()) return "% " + in_one_line(table.title) + "\n" + text;
  return concat("\\begin{table}\n\\centering\n\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n", text, "\\caption{",
                latex_number(table.caption), "}\n\\end{table}\n");
}

std::string to_latex(const std::vector<std::string>& notes) {
  std::string items;
  for (const auto& note : notes) items += "\\item " + latex_number(in_one_line(note)) + "\n";
  return items.empty() ? "" : concat("\\begin{itemize}\n\\footnotesize\n", items, "\\end{itemize}\n");
}

std::string to_csv(const Table& table) {
  const auto cell = [](const std::string& text, const TableColumn&) { return escaped_csv(text); };
  auto text = joined(table, heads_of(table), ",", cell) + "\n";
  for (const auto& row : table.rows) text += joined(table, row, ",", cell) + "\n";
  return text;
}

std::string to_html(const Table& table, bool is_tall) {
  const auto name = escaped_html(table.title.empty() && !table.header.empty() ? table.header[0].name : table.title);
  auto html = concat("<div class=\"scroll", is_tall ? " tall" : "",
                     "\" tabindex=\"0\" role=\"region\" aria-label=\"Table of ", name, "\"><table>\n<thead><tr>");
  for (const auto& column : table.header)
    html += concat("<th", is_number(column) ? " class=\"n\">" : ">", escaped_html(column.name), "</th>");
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows)
    html +=
        "<tr><th scope=\"row\">" + escaped_html(row[0]) + "</th>" + joined(table, row, "", html_cell, 1) + "</tr>\n";
  return html + "</tbody>\n</table></div>\n";
}

json to_json(const Table& table) {
  json rows = json::array();
  for (const auto& row : table.rows) {
    auto& one = rows.emplace_back(json::object());
    for (size_t i = 0; i < row.size(); ++i) one[table.header[i].name] = row[i];
  }
  return {{"title", table.title}, {"rows", rows}};
}

}  // namespace cloze
