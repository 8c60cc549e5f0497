#include "suites/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/error.h"
#include "data/byte_source.h"
#include "suites/json_lines.h"

namespace cloze {

namespace {

/// Reads the fields of one row after another.
class RowReader {
 public:
  RowReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // byte order mark
  }

  /// The next row that is not an empty line; false at the end.
  bool next(std::vector<std::string>& fields, uint64_t& line) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) skip_line_end();
    if (at_ >= text_.size()) return false;
    fields.clear();
    line = line_;
    fields.push_back(field());
    while (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      fields.push_back(field());
    }
    if (at_ < text_.size()) skip_line_end();
    return true;
  }

 private:
  bool ends_field(char c) const { return c == ',' || c == '\n' || c == '\r'; }

  void skip_line_end() {
    line_ += text_[at_] == '\n';
    ++at_;
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const size_t begin = at_;
    while (at_ < text_.size() && !ends_field(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const uint64_t first = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          require<DataError>(at_ >= text_.size() || ends_field(text_[at_]), file_, ":", line_,
                             ": has text after the quote that ends a field; double the quotes inside a field");
          return value;
        }
        ++at_;
      }
      line_ += text_[at_] == '\n';
      value += text_[at_];
    }
    fail<DataError>(file_, ":", first, ": a quote begins here and does not end; the file may be cut");
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  uint64_t line_ = 1;
};

}  // namespace

bool is_missing(std::string_view field) {
  static constexpr std::array<std::string_view, 18> marks{"",     "#N/A", "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN",
                                                          "-NaN", "-nan", "1.#IND",   "1.#QNAN", "<NA>",    "N/A",
                                                          "NA",   "NULL", "NaN",      "None",    "n/a",     "nan"};
  return field == "null" || std::find(marks.begin(), marks.end(), field) != marks.end();
}

std::optional<size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return {};
  return static_cast<size_t>(found - columns.begin());
}

std::vector<std::string> CsvTable::text(std::string_view column) const {
  const auto index = find(column);
  require<DataError>(index.has_value(), file, ": has no column '", column, "'");
  std::vector<std::string> found;
  for (const auto& row : rows) found.push_back(row[*index]);
  return found;
}

std::vector<double> CsvTable::numbers(std::string_view column) const {
  std::vector<double> found;
  for (const auto& field : text(column)) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!is_missing(field)) {
      const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
      require<DataError>(fault == std::errc() && end == field.data() + field.size(), file, ":", lines[found.size()],
                         ": column '", column, "' has '", field, "', which is no number");
    }
    found.push_back(value);
  }
  return found;
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  CsvTable table{.file = file, .columns = {}, .rows = {}, .lines = {}};
  RowReader reader(text, table.file);
  uint64_t line = 0;
  require<DataError>(reader.next(table.columns, line), file, ": is empty; a table begins with a line of column names");
  for (std::vector<std::string> row; reader.next(row, line);) {
    require<DataError>(row.size() == table.columns.size(), file, ":", line, ": has ", row.size(), " of the ",
                       table.columns.size(), " fields of the header; the file may be cut");
    table.rows.push_back(row);
    table.lines.push_back(line);
  }
  return table;
}

CsvTable read_csv(const std::string& file) { return parse_csv(read_bytes(file, most_suite_bytes), file); }

}  // namespace cloze
