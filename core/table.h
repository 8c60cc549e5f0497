#pragma once
// Plain tables of a report, in the forms that readers and programs want.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cloze {

/// A titled table; every row has as many cells as the header.
struct Table {
  std::string title;  ///< empty: none is printed
  std::vector<std::string> header{};
  std::vector<std::vector<std::string>> rows{};
  std::string picture{};    ///< SVG, which a page shows above the table
  bool of_numbers = false;  ///< columns but the first are aligned to the right
};

/// Columns padded to their widest cell.
std::string to_text(const Table& table);
std::string to_markdown(const Table& table);
/// A booktabs table.
std::string to_latex(const Table& table);
/// {"title", "rows": [{header: cell}]}
nlohmann::json to_json(const Table& table);

}  // namespace cloze
