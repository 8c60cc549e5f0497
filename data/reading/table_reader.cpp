#include "data/reading/table_reader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

constexpr size_t most_row_bytes = 64 << 20;

/// The names of columns, as far as they are short.
std::string list_of(const std::vector<std::string_view>& names) {
  constexpr size_t most = 12, longest = 60;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i)
    list += (i > 0 ? ", " : "") + std::string(names[i].substr(0, longest));
  return names.size() > most ? list + ", ..." : list;
}

/// A cell without its quotes, where it is in quotes as a whole and those inside of it are doubled.
std::string without_quotes(std::string_view cell) {
  if (cell.size() < 2 || cell.front() != '"' || cell.back() != '"') return std::string(cell);
  std::string text;
  for (size_t at = 1; at + 1 < cell.size(); ++at) {
    const bool is_mark = cell[at] == '"';
    if (is_mark && (at + 2 == cell.size() || cell[++at] != '"')) return std::string(cell);
    text += cell[at];
  }
  return text;
}

/// Throws DataError for a cell whose quotes do not end.
[[noreturn]] void fail_open(const std::string& where) {
  fail<DataError>(where, ": a cell in quotes does not end; close its quotes, or double those inside of it");
}

}  // namespace

bool TableRows::add(std::string_view line, uint64_t number) {
  const bool begins = !is_open_;
  if (separator_ == 0) separator_ = quotes_ == TableQuotes::are_text ? '\t' : table_separator(name_, line);
  if (begins) {
    line_ = number;
    bytes_ = 0;
    unquoted_.clear();
    goes_on_ = false;
  }
  bytes_ += line.size();
  if (bytes_ > most_row_bytes) fail_open(where());
  cells_.clear();
  if (begins && separator_ == '\t' && quotes_ != TableQuotes::enclose) {
    split_cells(line, separator_, cells_);
    if (quotes_ == TableQuotes::are_text) return true;
  }
  if (begins && !cells_.empty() && cells_.size() == width_)
    for (const auto cell : cells_) unquoted_.push_back(without_quotes(cell));
  else
    add_unquoted(line);
  cells_.assign(unquoted_.begin(), unquoted_.end());
  if (!is_open_ && width_ == 0) width_ = cells_.size();
  return !is_open_;
}

/// Appends the cells of a line, the first of which may be open.
void TableRows::add_unquoted(std::string_view line) {
  size_t at = 0;
  const auto read_quoted = [&] {
    auto& cell = unquoted_.back();
    for (is_open_ = true; at < line.size(); ++at) {
      if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) {
        is_open_ = false;
        ++at;
        return;
      }
      if (line[at] == '"') ++at;  // a doubled quote is one
      cell += line[at];
    }
  };
  const auto read_rest = [&] {  // of a cell, past its separator
    const size_t end = std::min(line.find(separator_, at), line.size());
    unquoted_.back() += line.substr(at, end - at);
    at = end + 1;
  };
  const auto read_after_quotes = [&] {
    const auto after = line.substr(at, line.find(separator_, at) - at);
    if (!goes_on_ && !is_blank(after)) {
      goes_on_ = true;
      has_backslash_ = unquoted_.back().ends_with('\\');
    }
    read_rest();
  };
  if (is_open_) {
    unquoted_.back() += '\n';
    read_quoted();
    if (is_open_) return;
    read_after_quotes();
  }
  while (at <= line.size()) {
    unquoted_.emplace_back();
    if (at < line.size() && line[at] == '"') {
      ++at;
      read_quoted();
      if (is_open_) return;
      read_after_quotes();
    } else {
      read_rest();
    }
  }
}

void TableRows::end() const {
  if (is_open_) fail_open(where());
}

std::string TableRows::where() const { return concat(name_, ":", line_); }

std::string TableRows::fault() const {
  if (!goes_on_) return "";
  return concat(": text follows the closing quote of a cell; ",
                has_backslash_ ? "quotes are doubled inside of cells, not written after a backslash: pandas writes "
                                 "the table anew, read_csv(FILE, escapechar=\"\\\\\").to_csv(OTHER, index=False)"
                               : "double the quotes inside of it (RFC 4180)");
}

void split_cells(std::string_view line, char separator, std::vector<std::string_view>& cells) {
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(separator, at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
}

std::optional<size_t> find_column(const std::vector<std::string_view>& names, std::string_view name,
                                  const std::string& where) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  require<DataError>(std::find(found + 1, names.end(), name) == names.end(), where, ": two columns are named '",
                     shortened(std::string(name)), "'; give each column a name of its own");
  return static_cast<size_t>(found - names.begin());
}

std::vector<std::string> table_cells(std::string_view line, char separator) {
  TableRows rows("", {.separator = separator});
  rows.add(line, 1);
  return {rows.cells().begin(), rows.cells().end()};
}

char table_separator(const std::string& name, std::string_view first) {
  if (uncompressed_name(name).ends_with(".tsv")) return '\t';
  char best = ',';
  size_t most = 1;
  for (const char separator : {',', ';', '\t'})
    if (const auto cells = table_cells(first, separator).size(); cells > most) {
      best = separator;
      most = cells;
    }
  return best;
}

bool is_named_table(const std::string& name) {
  const auto plain = uncompressed_name(name);
  return plain.ends_with(".csv") || plain.ends_with(".tsv");
}

std::optional<std::string_view> TableReader::read(std::string_view line, uint64_t number) {
  if ((line.empty() && !rows_.is_open()) || !rows_.add(line, number)) return std::nullopt;
  if (columns_ == 0) {
    read_names();
    return std::nullopt;
  }
  const auto fault = rows_.separator() == '\t' ? "" : rows_.fault();
  require<DataError>(fault.empty(), rows_.where(), fault);
  require<DataError>(rows_.cells().size() == columns_, rows_.where(), ": has ", rows_.cells().size(),
                     " cells, the file's first line has ", columns_,
                     "; write the same number in every record, cells with separators in quotes");
  return rows_.cells()[at_];
}

void TableReader::read_names() {
  auto names = rows_.cells();
  for (auto& name : names) name = without_white_space_around(name);
  const auto column = find_column(names, column_, rows_.where());
  require<DataError>(column.has_value(), rows_.where(), ": no column is named '", column_,
                     "'; name the column of the text with --field, one of ", list_of(names));
  columns_ = names.size();
  at_ = *column;
}

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// The state.json of a dataset; null for another one, or none.
json state_of_dataset(const std::string& folder) {
  constexpr uint64_t most_bytes = 16 << 20;
  const auto path = folder + "/state.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) > most_bytes) return nullptr;
  auto state = parse_json(read_text(path, most_bytes));
  const bool is_of_dataset = state.is_object() && state.contains("_data_files") && state["_data_files"].is_array();
  return is_of_dataset ? state : json();
}

/// Whether a name is one of a file in the folder itself.
bool is_plain_name(const std::string& name) {
  return !name.empty() && fs::path(name).filename() == name && name != "..";
}

}  // namespace

std::optional<std::vector<std::string>> files_of_dataset(const std::string& folder) {
  const auto state = state_of_dataset(folder);
  if (state.is_null()) return std::nullopt;
  const auto selected = state.value("_indices_data_files", json());
  require<DataError>(selected.empty(), folder,
                     ": is a selection of rows of an old version of `datasets`; save it again with its save_to_disk");
  std::vector<std::string> files;
  for (const auto& entry : state["_data_files"]) {
    const auto named = entry.is_object() ? entry.value("filename", json()) : json();
    const auto name = named.is_string() ? named.get<std::string>() : std::string();
    require<DataError>(is_plain_name(name), folder, "/state.json: names the file '", name,
                       "', which is no file of its folder; copy the folder again");
    std::error_code ignored;
    const auto path = (fs::path(folder) / name).string();
    require<DataError>(fs::is_regular_file(path, ignored), path,
                       ": is missing, and state.json says that it has rows; copy the folder again");
    files.push_back(path);
  }
  return files;
}

bool describes_dataset(const std::string& name) {
  return name == "dataset_info.json" || name == "dataset_infos.json" || name == "dataset_dict.json";
}

bool is_dataset(const std::string& folder) { return !state_of_dataset(folder).is_null(); }

}  // namespace cloze
