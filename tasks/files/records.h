#pragma once
// The records of a file: lines of tables, objects of JSON lines, texts of a folder; each with the columns asked for.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/utf8.h"
#include "tasks/task_config.h"

namespace cloze {

/// What a record has in a column.
struct Cell {
  std::string text{};                ///< unless it is a list
  std::vector<std::string> texts{};  ///< of a list; of answers
  std::vector<int64_t> starts{};     ///< of answers: code points in the context
  bool is_list = false;
  bool is_missing = false;  ///< null, or a column that is optional and not there
};

/// A column by its name, in tables also by its position, in JSON lines by its path.
struct ColumnName {
  std::string name{};
  bool is_optional = false;
};

struct RecordSource {
  std::vector<std::string> files{};  ///< whose lines stand side by side
  TaskFormat format = TaskFormat::tsv;
  bool header = false;
  /// Lines of a table with another number of cells, lines that are no object of JSON and, but for tables side by side,
  /// lines that are not UTF-8 are left out.
  bool skip_bad = false;
  std::string each{};
  std::vector<ColumnName> columns{};
};

/// Records that are bad, and left out where that is asked for.
struct BadRecords {
  uint64_t count = 0;
  std::string first{};  ///< which, and why
};

/// Reads one record after another.
struct RecordReader {
  virtual ~RecordReader() = default;
  /// Reads the next record into a cell for each column of the source; false at the end. Throws DataError with the place
  /// of a record that lacks a column, has another number of cells, or is not UTF-8.
  virtual bool next(std::vector<Cell>& cells) = 0;
  /// `FILE:LINE` of the last record, for messages.
  virtual std::string where() const = 0;
  virtual uint64_t line() const = 0;
  /// Lines that were left out so far.
  virtual BadRecords bad() const { return {}; }
  /// Whether its first line was a record though it may be a header: columns are numbered, and none was said to be
  /// there.
  virtual bool first_line_may_be_header() const { return false; }
  /// Whether the cells of that line are whole numbers, each another one, as names of columns may be.
  virtual bool begins_with_numbers() const { return false; }
};

/// Opens a file of records. Throws DataError for one that cannot be read.
std::unique_ptr<RecordReader> open_records(const RecordSource& source);
/// One of JSON lines. Throws as open_records.
std::unique_ptr<RecordReader> open_json_records(const RecordSource& source);

/// The position that the name of a column is: `0`, `-1`.
std::optional<int64_t> column_position(const std::string& name);

/// Throws DataError with the place of the last record where its text has a NUL.
void require_no_nul(const std::string& text, const RecordReader& reader);

/// A line that is left out where bad ones are: one that is not UTF-8, or whose quotes are not those of CSV.
struct BadLine : DataError {
  using DataError::DataError;
};
struct NotUtf8 : BadLine {
  using BadLine::BadLine;
};

[[noreturn]] void fail_not_utf8(size_t byte, const std::string& where);
/// Throws NotUtf8 with the place, `where()`, of a line that is not UTF-8.
template <class Where>
void require_utf8(std::string_view line, const Where& where) {
  if (const size_t bad = find_invalid_utf8(line); bad != line.npos) fail_not_utf8(bad, where());
}

}  // namespace cloze
