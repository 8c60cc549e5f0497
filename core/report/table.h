#pragma once
// Tables of a report, in the forms that readers and programs want.
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cloze {

/// What a column holds: numbers are aligned to the right, sentences break, and code, in lines, stands as it is.
enum class ColumnKind { text, number, sentence, code };

/// A column of a table.
struct TableColumn {
  TableColumn(const char* head) : TableColumn(std::string(head)) {}
  TableColumn(std::string head, ColumnKind of_kind = ColumnKind::text, int of_rank = 0)
      : name(std::move(head)), kind(of_kind), rank(of_rank) {}
  std::string name;
  ColumnKind kind;
  int rank;  ///< where a terminal is too narrow, columns of the highest rank go first; 0: it stays
};

/// A titled table; every row has as many cells as the header. Cells are written by who fills them in, since the numbers
/// of one column may be of several units and precisions.
struct Table {
  std::string title{};    ///< empty: none is printed
  std::string caption{};  ///< what a float of LaTeX says of it; empty: it is no float
  std::vector<TableColumn> header{};
  std::vector<std::vector<std::string>> rows{};
  std::string picture{};  ///< of a page, above the table: HTML
};

/// The names of the columns.
std::vector<std::string> heads_of(const Table& table);

/// Columns of which all but the first hold numbers.
std::vector<TableColumn> columns_of_numbers(std::vector<std::string> names);

/// Removes the columns in which every row is empty.
void drop_empty_columns(Table& table);

/// The columns of the longest line of a table's text, without its title.
size_t width_of(const Table& table);

/// Columns padded to their widest cell. Where they are wider than `columns`, those of the highest ranks go: sentences
/// below the table, the others for good.
std::string to_text(Table table, size_t columns = std::numeric_limits<size_t>::max());
std::string to_markdown(const Table& table);
/// A booktabs table, which with a caption is a float that fits one of two columns of a paper.
std::string to_latex(const Table& table);
/// Sentences below the tables of a paper, as a list; empty for none.
std::string to_latex(const std::vector<std::string>& notes);
/// With a line of heads.
std::string to_csv(const Table& table);
/// The first column heads the rows. `is_tall`: it scrolls where there are many rows.
std::string to_html(const Table& table, bool is_tall = false);
/// {"title", "rows": [{header: cell}]}
nlohmann::json to_json(const Table& table);

}  // namespace cloze
