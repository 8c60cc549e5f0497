#pragma once
// Tables of text: CSV and TSV, and folders of tables that the library `datasets` made.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// The cells of a record of a table. Source: RFC 4180. Differs: other separators than commas; what follows the closing
/// quotes of a cell is part of it, and noted.
struct TableRecord {
  std::vector<std::string> cells{};
  bool is_open = false;        ///< its last cell is in quotes that have not ended
  bool goes_on = false;        ///< text follows the closing quotes of a cell
  bool has_backslash = false;  ///< which a backslash stands before
  /// Adds a line, the next one of a cell that is open.
  void add(std::string_view line, char separator);
};
/// What is wrong with the quotes of a record by RFC 4180, as part of a message, with what to do; empty for nothing.
std::string fault_of_quotes(const TableRecord& record);
/// The cells of a line.
std::vector<std::string> table_cells(std::string_view line, char separator);

/// The separator of a table by its first line: the most frequent of comma, semicolon and tab outside of quotes; a tab
/// in a file whose name says TSV.
char table_separator(const std::string& name, std::string_view first);

/// A file of a table by its name, compressed or not: `.csv` or `.tsv`.
bool is_named_table(const std::string& name);

/// Reads one column of a table, named in its first line. Between tabs, a line that has all cells is a record, whatever
/// quotes its cells begin with; only those that are in quotes as a whole lose them.
class TableReader {
 public:
  /// name     of the file
  /// column   of the text
  /// tabs     its cells have tabs between them, whatever its name
  TableReader(std::string name, std::string column, bool tabs)
      : name_(std::move(name)), column_(std::move(column)), separator_(tabs ? '\t' : '\0') {}
  /// The text of the record that ends with a line; null for names of columns, and for a line in the middle of a record.
  /// `number`: of the line. Throws DataError for a table without the column, and for a record of another number of
  /// cells.
  const std::string* read(std::string_view line, uint64_t number);
  /// Throws DataError if the file ends inside quotes.
  void end() const;

 private:
  std::string where() const;
  void read_names();

  std::string name_, column_;
  char separator_;  // 0: no line has been read
  size_t columns_ = 0, at_ = 0;
  TableRecord record_{};
  uint64_t first_line_ = 0;  // of the record
  size_t record_bytes_ = 0;
};

/// The files of a split in the order of its rows, which its state.json names; nullopt for a folder that is none.
/// Source: datasets 4.0, arrow_dataset.py, Dataset.save_to_disk.
/// Throws DataError for one that lacks a file, and for one that is a selection from its files, as versions before 2
/// made them.
std::optional<std::vector<std::string>> files_of_dataset(const std::string& folder);

/// Whether a file describes a dataset, and holds none of its text: `dataset_info.json`, `dataset_infos.json`,
/// `dataset_dict.json`.
bool describes_dataset(const std::string& name);

/// Whether the state.json of a folder is that of a dataset.
bool is_dataset(const std::string& folder);

}  // namespace cloze
