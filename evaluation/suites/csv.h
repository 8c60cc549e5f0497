#pragma once
// Tables in CSV files (RFC 4180).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A table with a header line. Fields are as written, without their quotes.
struct CsvTable {
  std::string file;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<uint64_t> lines;  ///< at which each row begins, from 1

  /// The index of a column, or none.
  std::optional<size_t> find(std::string_view column) const;
  /// The fields of a column. Throws DataError if there is none of this name.
  std::vector<std::string> text(std::string_view column) const;
  /// The numbers of a column; NaN where it is missing. Throws DataError with the line of a field that is neither.
  std::vector<double> numbers(std::string_view column) const;
};

/// The table in a file; `.xz` and `.gz` are read as they are. Throws DataError with the line of a row with other
/// numbers of fields than the header, and of a quote that does not end. What follows the closing quotes of a field is
/// part of it, as pandas.read_csv has it.
CsvTable read_csv(const std::string& file);
/// The same of a text; `file` is for messages.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// Whether a field stands for a missing value, as pandas.read_csv has it: empty, `NA`, `NaN`, `None`, `null`, ...
bool is_missing(std::string_view field);

}  // namespace cloze
