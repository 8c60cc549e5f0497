#pragma once
// Tables of text: CSV and TSV, and folders of tables that the library `datasets` made.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cloze {

/// What quotes are in a table.
enum class TableQuotes {
  enclose,      ///< around a cell, and doubled in it
  may_enclose,  ///< the same; between tabs text in a line that has all cells without them, but around a whole cell
  are_text      ///< between tabs
};

struct TableForm {
  TableQuotes quotes = TableQuotes::enclose;
  char separator = 0;  ///< 0: a tab where quotes are text, else by the name of the file and its first line
};

/// The rows of a table, which is handed over line by line. Source: RFC 4180. Differs: other separators than commas;
/// what follows the closing quotes of a cell is part of it, and noted.
class TableRows {
 public:
  /// name   of the file, for messages
  TableRows(std::string name, const TableForm& form)
      : name_(std::move(name)), quotes_(form.quotes), separator_(form.separator) {}
  /// Takes the next line; true: a row ends with it. Throws DataError for a row of more than 64 MB.
  bool add(std::string_view line, uint64_t number);
  /// Whether the row goes on in the next line.
  bool is_open() const { return is_open_; }
  /// Throws DataError for lines that have ended inside of quotes.
  void end() const;
  /// The cells of the row that has ended, as long as its last line is there, and until the next one is taken.
  const std::vector<std::string_view>& cells() const { return cells_; }
  /// What is wrong with its quotes by RFC 4180, as part of a message, with what to do; empty for nothing.
  std::string fault() const;
  char separator() const { return separator_; }
  uint64_t line() const { return line_; }  ///< in which the row begins
  std::string where() const;               ///< `name:line`

 private:
  void add_unquoted(std::string_view line);
  std::string name_;
  TableQuotes quotes_;
  char separator_;
  std::vector<std::string> unquoted_{};  // cells, where there may be quotes
  std::vector<std::string_view> cells_{};
  bool is_open_ = false, goes_on_ = false, has_backslash_ = false;  // text follows closing quotes, which a \ is before
  uint64_t line_ = 0;
  size_t width_ = 0, bytes_ = 0;  // of the first row, and of this one
};

/// The cells of a line.
std::vector<std::string> table_cells(std::string_view line, char separator);
/// Appends what stands between the separators of a line, quotes and all.
void split_cells(std::string_view line, char separator, std::vector<std::string_view>& cells);
/// The position of a column; none where no name is its own. Throws DataError with the place of the names where two are.
std::optional<size_t> find_column(const std::vector<std::string_view>& names, std::string_view name,
                                  const std::string& where);

/// The separator of a table by its first line: the most frequent of comma, semicolon and tab outside of quotes; a tab
/// in a file whose name says TSV.
char table_separator(const std::string& name, std::string_view first);

/// A file of a table by its name, compressed or not: `.csv` or `.tsv`.
bool is_named_table(const std::string& name);

/// Reads one column of a table, named in its first line.
class TableReader {
 public:
  /// name     of the file
  /// column   of the text
  /// tabs     its cells have tabs between them, whatever its name
  TableReader(std::string name, std::string column, bool tabs)
      : column_(std::move(column)),
        rows_(std::move(name), {.quotes = TableQuotes::may_enclose, .separator = tabs ? '\t' : '\0'}) {}
  /// The text of the row that ends with a line; none for names of columns, and for a line in the middle of a row.
  /// `number`: of the line. Throws DataError for a table without the column, and for a row of another number of cells.
  std::optional<std::string_view> read(std::string_view line, uint64_t number);
  /// Throws DataError if the file ends inside quotes.
  void end() const { rows_.end(); }

 private:
  void read_names();
  std::string column_;
  TableRows rows_;
  size_t columns_ = 0, at_ = 0;  // 0: the names have not been read
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
