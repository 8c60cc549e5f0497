#include "data/reading/pair_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "data/reading/text_lines.h"
#include "data/reading/table_reader.h"

namespace cloze {

PairReader::PairReader(const ReaderOptions& options, const std::string& targets)
    : columns_(options.columns),
      field_(options.field.value_or("")),
      targets_(targets.empty() ? nullptr : std::make_unique<LineReader>(targets)) {}

void PairReader::read(const LineReader& lines, std::string_view line, const Add& add) {
  if (targets_) {
    std::string_view target;
    require<DataError>(targets_->next(target), lines.where(), ": ", targets_->name,
                       " has no such line; both files of pairs must have the same number of lines");
    return add(line, target);
  }
  if (is_blank(line)) return;
  if (line[0] != '{') return read_columns(lines.where(), line, add);
  if (const auto object = parse_json(line); object.is_object()) {
    are_json_ = true;
    return read_object(lines.where(), object, add);
  }
  if (are_json_ || too_deep(line) != std::string_view::npos)
    fail<DataError>(lines.where(), ": not a JSON object", are_json_ ? ", unlike the lines before" : "",
                    json_line_fault(line), "; JSON lines have one object per line");
  read_columns(lines.where(), line, add);
}

void PairReader::end(const LineReader& lines) {
  std::string_view more;
  require<DataError>(!targets_ || !targets_->next(more), targets_ ? targets_->name : "", ": has more lines than ",
                     lines.name, "; both files of pairs must have the same number of lines");
}

void PairReader::read_object(const std::string& where, const nlohmann::json& object, const Add& add) const {
  const auto side = [&](const std::string& key) {
    require<DataError>(object.contains(key) && object[key].is_string(), where, ": has no text '", key,
                       "'; name the keys of both sides with --columns NAME,NAME");
    auto text = object[key].get<std::string>();
    require_no_nul(text, where);
    std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
  };
  const auto named = !columns_.empty() ? columns_ : field_;
  const auto comma = named.find(',');
  const auto source = side(comma == std::string::npos ? "source" : named.substr(0, comma));
  const auto target = side(comma == std::string::npos ? "target" : named.substr(comma + 1));
  add(source, target);
}

/// Reads a line of a table: its two columns, or those of --columns, named in the first line of the file.
void PairReader::read_columns(const std::string& where, std::string_view line, const Add& add) {
  std::vector<std::string_view> cells;
  split_cells(line, '\t', cells);
  require<DataError>(
      cells.size() > 1, where,
      ": no tab between source and target; write both in one line, or name the other file with --target");
  if (columns_.empty()) {
    require<DataError>(
        cells.size() == 2, where, ": has ", cells.size(),
        " columns, but a pair has two; write two, or select two with --columns NAME,NAME by the names in "
        "the file's first line");
    return add(cells[0], cells[1]);
  }
  if (!table_) {
    table_ = read_header(where, cells, line);
    return;
  }
  require<DataError>(cells.size() == table_->columns, where, ": has ", cells.size(),
                     " columns, the file's first line has ", table_->columns, "; write the same number in every line");
  add(cells[table_->source], cells[table_->target]);
}

/// The columns that --columns names.
PairReader::Table PairReader::read_header(const std::string& where, std::vector<std::string_view> cells,
                                          std::string_view line) const {
  for (auto& name : cells) name = without_white_space_around(name);
  const auto comma = columns_.find(',');
  const auto find = [&](std::string_view name) {
    const auto column = find_column(cells, name, where);
    require<DataError>(column.has_value(), where, ": no column is named '", name,
                       "'; --columns takes two names of this first line: ", line);
    return *column;
  };
  const Table table{
      .columns = cells.size(), .source = find(columns_.substr(0, comma)), .target = find(columns_.substr(comma + 1))};
  require<DataError>(table.source != table.target, where, ": --columns ", columns_,
                     " names one column twice; a pair has two");
  return table;
}

}  // namespace cloze
