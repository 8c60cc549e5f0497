#include "data/reading/table_reader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

constexpr size_t max_record = 16 << 20;

/// The names of columns, as far as they are short.
std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t most = 12, longest = 60;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) list += (i > 0 ? ", " : "") + names[i].substr(0, longest);
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

/// The cells of a line between tabs.
std::vector<std::string> tab_cells(std::string_view line) {
  std::vector<std::string> cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    cells.push_back(without_quotes(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

}  // namespace

void TableRecord::add(std::string_view line, char separator) {
  size_t at = 0;
  const auto read_quoted = [&] {
    auto& cell = cells.back();
    for (is_open = true; at < line.size(); ++at) {
      if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) {
        is_open = false;
        ++at;
        return;
      }
      if (line[at] == '"') ++at;  // a doubled quote is one
      cell += line[at];
    }
  };
  const auto read_rest = [&] {  // of a cell, past its separator
    const size_t end = std::min(line.find(separator, at), line.size());
    cells.back() += line.substr(at, end - at);
    at = end + 1;
  };
  const auto read_after_quotes = [&] {
    const auto after = line.substr(at, line.find(separator, at) - at);
    if (!goes_on && !is_blank(after)) {
      goes_on = true;
      has_backslash = cells.back().ends_with('\\');
    }
    read_rest();
  };
  if (is_open) {
    cells.back() += '\n';
    read_quoted();
    if (is_open) return;
    read_after_quotes();
  }
  while (at <= line.size()) {
    cells.emplace_back();
    if (at < line.size() && line[at] == '"') {
      ++at;
      read_quoted();
      if (is_open) return;
      read_after_quotes();
    } else {
      read_rest();
    }
  }
}

std::string fault_of_quotes(const TableRecord& record) {
  if (!record.goes_on) return "";
  return concat(": text follows the closing quote of a cell; ",
                record.has_backslash
                    ? "quotes are doubled inside of cells, not written after a backslash: pandas writes "
                      "the table anew, read_csv(FILE, escapechar=\"\\\\\").to_csv(OTHER, index=False)"
                    : "double the quotes inside of it (RFC 4180)");
}

std::vector<std::string> table_cells(std::string_view line, char separator) {
  TableRecord record;
  record.add(line, separator);
  return std::move(record.cells);
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

std::string TableReader::where() const { return concat(name_, ":", first_line_); }

const std::string* TableReader::read(std::string_view line, uint64_t number) {
  if (separator_ == 0) separator_ = table_separator(name_, line);
  if (!record_.is_open) {
    if (line.empty()) return nullptr;
    record_ = {};
    record_bytes_ = 0;
    first_line_ = number;
  }
  // In tables of tabs quotes are seldom marks, and belong to the text where the line has all cells without them.
  auto cells = separator_ == '\t' && !record_.is_open ? tab_cells(line) : std::vector<std::string>();
  if (columns_ > 0 && cells.size() == columns_)
    record_.cells = std::move(cells);
  else
    record_.add(line, separator_);
  record_bytes_ += line.size();
  require<DataError>(record_bytes_ <= max_record, where(),
                     ": a cell in quotes does not end in 16 MB; close its quotes, or double those inside of it");
  if (record_.is_open) return nullptr;
  if (columns_ == 0) {
    read_names();
    return nullptr;
  }
  const auto fault = separator_ == '\t' ? "" : fault_of_quotes(record_);
  require<DataError>(fault.empty(), where(), fault);
  require<DataError>(record_.cells.size() == columns_, where(), ": has ", record_.cells.size(),
                     " cells, the file's first line has ", columns_,
                     "; write the same number in every record, cells with separators in quotes");
  return &record_.cells[at_];
}

void TableReader::read_names() {
  auto& names = record_.cells;
  for (auto& name : names) name = std::string(without_white_space_around(name));
  const auto found = std::find(names.begin(), names.end(), column_);
  require<DataError>(found != names.end(), where(), ": no column is named '", column_,
                     "'; name the column of the text with --field, one of ", list_of(names));
  require<DataError>(std::count(names.begin(), names.end(), column_) == 1, where(), ": two columns are named '",
                     column_, "'; give each column a name of its own");
  columns_ = names.size();
  at_ = static_cast<size_t>(found - names.begin());
}

void TableReader::end() const {
  require<DataError>(!record_.is_open, where(), ": a cell in quotes does not end; close its quotes");
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
