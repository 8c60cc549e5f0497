#pragma once
// The texts of a column of a table in a file of Arrow or Parquet.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/reading/reader.h"

namespace cloze {

/// What a row has in a column.
struct ColumnRow {
  std::vector<std::string> texts{};  ///< one, or in lists those of every element
  bool has_null = false;             ///< a value is missing
};

/// Reads one column of a table, row by row. Made in the module of Arrow (data/arrow), which is loaded on demand.
struct ColumnReader {
  virtual ~ColumnReader() = default;
  /// Reads the next row; false at the end. Throws DataError for a damaged file.
  virtual bool next(ColumnRow& row) = 0;
};

/// What is read.
struct ColumnSource {
  std::string file;
  TextFormat format;   ///< arrow or parquet
  std::string column;  ///< its name; in structs a path: `article.title`
};

/// The format of a file by its first bytes: arrow or parquet; nullopt for others, and for what is no file.
std::optional<TextFormat> table_format_of(const std::string& file);

/// Opens a column. Throws DataError for a file that is damaged or lacks the column, and where Cloze was built without
/// Arrow.
std::unique_ptr<ColumnReader> open_column(const ColumnSource& source);

}  // namespace cloze
