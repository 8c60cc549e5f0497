#include "evaluation/suites/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/contains.h"
#include "core/error.h"
#include "data/reading/byte_source.h"
#include "data/reading/table_reader.h"
#include "evaluation/suites/json_lines.h"

namespace cloze {

bool is_missing(std::string_view field) {
  static constexpr std::array<std::string_view, 18> marks{"",     "#N/A", "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN",
                                                          "-NaN", "-nan", "1.#IND",   "1.#QNAN", "<NA>",    "N/A",
                                                          "NA",   "NULL", "NaN",      "None",    "n/a",     "nan"};
  return field == "null" || contains(marks, field);
}

std::optional<size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return {};
  return static_cast<size_t>(found - columns.begin());
}

std::vector<std::string> CsvTable::text(std::string_view column) const {
  const auto index = find(column);
  require<DataError>(index.has_value(), file, ": has no column '", column, "'");
  std::vector<std::string> cells;
  for (const auto& row : rows) cells.push_back(row[*index]);
  return cells;
}

std::vector<double> CsvTable::numbers(std::string_view column) const {
  std::vector<double> values;
  for (const auto& field : text(column)) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!is_missing(field)) {
      const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
      require<DataError>(fault == std::errc() && end == field.data() + field.size(), file, ":", lines[values.size()],
                         ": column '", column, "' has '", field, "', which is no number");
    }
    values.push_back(value);
  }
  return values;
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  CsvTable table{.file = file, .columns = {}, .rows = {}, .lines = {}};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);                    // byte order mark
  const char line_end = text.find('\n') == std::string_view::npos ? '\r' : '\n';  // that of old Macintosh files
  TableRows rows(file, {.separator = ','});
  uint64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const auto line = text.substr(at, std::min(text.find(line_end, at), text.size()) - at);
    at += line.size() + 1;
    ++number;
    if (!rows.is_open() && (line.empty() || line == "\r")) continue;
    if (!rows.add(line, number)) continue;
    std::vector<std::string> cells(rows.cells().begin(), rows.cells().end());
    if (cells.back().ends_with('\r')) cells.back().pop_back();
    if (table.columns.empty()) {
      table.columns = std::move(cells);
      continue;
    }
    require<DataError>(cells.size() == table.columns.size(), rows.where(), ": has ", cells.size(), " of the ",
                       table.columns.size(), " fields of the header; the file may be cut");
    table.rows.push_back(std::move(cells));
    table.lines.push_back(rows.line());
  }
  require<DataError>(!rows.is_open(), rows.where(), ": a quote begins here and does not end; the file may be cut");
  require<DataError>(!table.columns.empty(), file, ": is empty; a table begins with a line of column names");
  return table;
}

CsvTable read_csv(const std::string& file) { return parse_csv(read_bytes(file, most_suite_bytes), file); }

}  // namespace cloze
