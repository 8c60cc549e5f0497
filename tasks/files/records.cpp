#include "tasks/files/records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/line_reader.h"
#include "data/reading/table_reader.h"
#include "data/reading/text_lines.h"

namespace cloze {

std::optional<int64_t> column_position(const std::string& name) {
  int64_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return position;
}

namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_text_bytes = uint64_t{64} << 20;  // of a text that is a file

/// The rows of a table.
class TableFile {
 public:
  TableFile(const std::string& file, TaskFormat format)
      : lines_(file), rows_(lines_.name, {format == TaskFormat::csv ? TableQuotes::enclose : TableQuotes::are_text}) {}
  /// Appends the cells of the next row, valid until the next call; false at the end.
  bool next(std::vector<std::string_view>& cells, bool skips_empty) {
    std::string bad_place;
    size_t bad_byte = std::string_view::npos;  // the first of the row that is not UTF-8
    for (std::string_view line;;) {
      if (!lines_.next(line)) {
        rows_.end();
        return false;
      }
      if (skips_empty && line.empty() && !rows_.is_open()) continue;
      if (bad_place.empty() && (bad_byte = find_invalid_utf8(line)) != line.npos) bad_place = lines_.where();
      if (rows_.add(line, lines_.number)) break;
    }
    if (const auto fault = rows_.fault(); !fault.empty())
      fail<BadLine>(where(), fault, ", or leave such lines out with --skip-bad");
    if (!bad_place.empty()) fail_not_utf8(bad_byte, bad_place);
    cells.insert(cells.end(), rows_.cells().begin(), rows_.cells().end());
    return true;
  }
  std::string where() const { return rows_.where(); }
  uint64_t line() const { return rows_.line(); }
  const std::string& name() const { return lines_.name; }

 private:
  LineReader lines_;
  TableRows rows_;
};

/// Tables whose lines stand side by side, as paste(1) has them.
class TableRecords final : public RecordReader {
 public:
  explicit TableRecords(const RecordSource& source) : source_(source) {
    for (const auto& file : source.files) tables_.emplace_back(file, source.format);
    names_columns_ = source.header;
    for (const auto& column : source.columns)
      if (!column_position(column.name)) names_columns_ = true;
  }
  bool next(std::vector<Cell>& cells) override {
    if (columns_.empty() && !begin()) return false;
    do {
      if (!std::exchange(holds_first_, false) && !read_text()) return false;
    } while (line_.size() != count_ && is_left_out());
    for (size_t i = 0; i < columns_.size(); ++i) {
      cells[i].is_missing = !columns_[i];
      if (columns_[i]) cells[i].text.assign(line_[*columns_[i]]);
    }
    return true;
  }
  std::string where() const override { return tables_.front().where(); }
  uint64_t line() const override { return tables_.front().line(); }
  BadRecords bad() const override { return bad_; }
  bool first_line_may_be_header() const override { return !names_columns_; }
  bool begins_with_numbers() const override { return !names_columns_ && begins_with_numbers_; }

 private:
  /// Counts a line with another number of cells. Throws DataError where none is to be left out.
  bool is_left_out() {
    const auto what = concat(where(), ": has ", counted(line_.size(), "cell"),
                             names_columns_ ? ", the line of names has " : ", the first line has ", count_);
    require<DataError>(source_.skip_bad, what, "; write the same number in every line",
                       source_.format == TaskFormat::csv ? ", cells with separators in quotes" : "",
                       ", or leave such lines out with --skip-bad");
    note(what);
    return true;
  }

  void note(const std::string& what) {
    if (bad_.count++ == 0) bad_.first = what;
  }

  /// As read(); lines that throw are left out where bad ones are.
  bool read_text() {
    for (;;) {
      try {
        return read();
      } catch (const BadLine& bad) {
        if (!source_.skip_bad || tables_.size() > 1) throw;
        note(bad.what());
      }
    }
  }

  /// Empty lines are no records, but beside another file or where a line has one cell, which may be empty.
  bool read() {
    line_.clear();
    const bool skips_empty = tables_.size() == 1 && count_ != 1;
    const bool is_line = tables_.front().next(line_, skips_empty);
    for (size_t i = 1; i < tables_.size(); ++i)
      if (tables_[i].next(line_, skips_empty) != is_line)
        fail<DataError>(is_line ? tables_[i].name() : tables_.front().name(), ": ends before ",
                        is_line ? tables_.front().name() : tables_[i].name(),
                        ", beside which it stands; give files with the same number of lines");
    return is_line;
  }

  /// Reads the first line and finds the columns; false for an empty file.
  bool begin() {
    if (!read()) return false;
    count_ = line_.size();
    if (has_numbers_for_names()) names_columns_ = true;
    begins_with_numbers_ = has_other_numbers();
    if (names_columns_)
      for (auto& name : line_) name = without_white_space_around(name);
    numbers_are_names_ = std::ranges::any_of(source_.columns, [this](const ColumnName& column) {
      const auto at = named(column.name);
      return at && is_place_from_begin(column.name) && column.name != std::to_string(*at);
    });
    for (const auto& column : source_.columns) columns_.push_back(find(column));
    holds_first_ = !names_columns_;
    return true;
  }

  /// Whether the first line is 0, 1, 2, ..., after an empty cell of row numbers or not, as pandas names columns that
  /// have no names.
  bool has_numbers_for_names() const {
    const size_t first = !line_.empty() && line_.front().empty() ? 1 : 0;
    if (line_.size() < first + 2) return false;
    for (size_t i = first; i < line_.size(); ++i)
      if (without_white_space_around(line_[i]) != std::to_string(i - first)) return false;
    return true;
  }

  bool has_other_numbers() const {
    auto cells = line_;
    std::ranges::sort(cells);
    const auto is_number = [&](std::string_view cell) { return column_position(std::string(cell)).has_value(); };
    return cells.size() > 1 && std::ranges::all_of(cells, is_number) &&
           std::ranges::adjacent_find(cells) == cells.end();
  }

  static bool is_place_from_begin(const std::string& name) { return column_position(name).value_or(-1) >= 0; }

  std::optional<size_t> named(const std::string& name) const {
    return names_columns_ ? find_column(line_, name, where()) : std::nullopt;
  }

  /// A number is a position where no number that is asked for is the name of another place.
  std::optional<size_t> find(const ColumnName& column) const {
    if (const auto at = named(column.name)) return at;
    const bool may_be_position = !numbers_are_names_ || !is_place_from_begin(column.name);
    const auto position = may_be_position ? column_position(column.name) : std::nullopt;
    const auto size = static_cast<int64_t>(count_);
    if (position && *position >= -size && *position < size)
      return static_cast<size_t>(*position < 0 ? *position + size : *position);
    if (column.is_optional) return std::nullopt;
    const auto is_this = [&](std::string_view cell) { return cell == column.name; };
    require<DataError>(!position, where(), ": has ", counted(count_, "cell"), ", none at position ", column.name,
                       "; positions count from 0",
                       std::ranges::any_of(line_, is_this) ? "; if this is a line of names, write `header: true`" : "");
    const std::vector<std::string> names(line_.begin(), line_.end());
    const auto near = did_you_mean(column.name, names);
    fail<DataError>(where(), ": no column is named '", shortened(column.name), "'",
                    !may_be_position ? concat("; its first line has ", shortened(listed(names)),
                                              ", of which numbers are names; call all columns by their names")
                    : near.empty()   ? concat("; its first line has ", shortened(listed(names)),
                                              ", and columns without names are called by position: 0")
                                     : near);
  }

  RecordSource source_;
  std::vector<TableFile> tables_;
  bool names_columns_ = false;
  bool begins_with_numbers_ = false;
  bool numbers_are_names_ = false;
  bool holds_first_ = false;  // the first line was read to count its cells, and is a record
  size_t count_ = 0;
  std::vector<std::optional<size_t>> columns_;
  std::vector<std::string_view> line_;
  BadRecords bad_{};
};

/// `NUM:dist How far is it ?`
class TrecRecords final : public RecordReader {
 public:
  explicit TrecRecords(const RecordSource& source) : source_(source), lines_(source.files.front()) {}
  bool next(std::vector<Cell>& cells) override {
    std::string_view line;
    do {
      if (!lines_.next(line)) return false;
    } while (is_blank(line));
    require_utf8(line, [&] { return where(); });
    const auto space = line.find(' '), colon = line.find(':');
    if (space == line.npos || colon > space)
      fail<DataError>(where(), ": '", shortened(std::string(line)),
                      "' does not begin with a label, COARSE:fine, and a space; it is no file of TREC");
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto& name = source_.columns[i].name;
      if (name == "coarse")
        cells[i].text.assign(line.substr(0, colon));
      else if (name == "fine")
        cells[i].text.assign(line.substr(0, space));
      else if (name == "text")
        cells[i].text.assign(line.substr(space + 1));
      else
        fail<DataError>(where(), ": has no column '", shortened(name), "'; a file of TREC has coarse, fine and text");
    }
    return true;
  }
  std::string where() const override { return lines_.where(); }
  uint64_t line() const override { return lines_.number; }

 private:
  RecordSource source_;
  LineReader lines_;
};

/// Entries of a folder that are folders, or files, in the order of their names; hidden ones are none. Throws DataError
/// for a pipe or a device.
std::vector<fs::path> entries_in(const fs::path& folder, bool folders) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) != folders || entry.path().filename().string()[0] == '.') continue;
    require<DataError>(folders || entry.is_regular_file(ignored), entry.path().string(),
                       ": is no file of a text (a pipe, a device or a link to nothing); remove it");
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

constexpr std::string_view byte_order_mark = "\uFEFF";

/// Throws NotText for a file that is none by its first bytes, with what it is.
void refuse_kind(const std::string& file) {
  LineReader lines(file);
  for (std::string_view line; lines.next(line);) continue;
}

class FolderRecords final : public RecordReader {
 public:
  explicit FolderRecords(const RecordSource& source) : source_(source) {
    const auto& folder = source.files.front();
    for (const auto& label : entries_in(folder, true)) {
      if (const auto inner = entries_in(label, true); !inner.empty())
        fail<DataError>(inner.front().string(),
                        ": is a folder inside that of a label, whose texts have none; move them to ", label.string());
      for (const auto& file : entries_in(label, false)) files_.push_back(file);
    }
    require<DataError>(!files_.empty(), folder, ": has no folder with texts; write FOLDER/LABEL/TEXT.txt");
  }
  bool next(std::vector<Cell>& cells) override {
    if (at_ == files_.size()) return false;
    const auto& file = files_[at_++];
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto& name = source_.columns[i].name;
      if (name == "label") {
        cells[i].text = file.parent_path().filename().string();
      } else if (name == "text") {
        cells[i].text = read_bytes(file.string(), most_text_bytes);
        if (cells[i].text.starts_with(byte_order_mark)) cells[i].text.erase(0, byte_order_mark.size());
        if (cells[i].text.find('\0') != std::string::npos) refuse_kind(file.string());
        require_no_nul(cells[i].text, *this);
        require_utf8(cells[i].text, [&] { return where(); });
      } else if (name == "name") {
        cells[i].text = file.stem().string();
      } else {
        fail<DataError>(where(), ": has no column '", shortened(name),
                        "'; a text of a folder has label, text and name");
      }
    }
    return true;
  }
  std::string where() const override { return files_[at_ - 1].string(); }
  uint64_t line() const override { return at_; }

 private:
  RecordSource source_;
  std::vector<fs::path> files_;
  size_t at_ = 0;
};

}  // namespace

void require_no_nul(const std::string& text, const RecordReader& reader) {
  if (text.find('\0') != text.npos) require_no_nul(text, reader.where());
}

void fail_not_utf8(size_t byte, const std::string& where) {
  fail<NotUtf8>(where, ": byte ", byte + 1,
                " of the line is not valid UTF-8; convert the text (iconv -f latin1 -t utf-8, if it is Latin-1)");
}

std::unique_ptr<RecordReader> open_records(const RecordSource& source) {
  using enum TaskFormat;
  switch (source.format) {
    case tsv:
    case csv:
      return std::make_unique<TableRecords>(source);
    case jsonl:
      return open_json_records(source);
    case trec:
      return std::make_unique<TrecRecords>(source);
    case folders:
      return std::make_unique<FolderRecords>(source);
    case automatic:
    case conll:
    case conllu:
    case squad:
      break;
  }
  fail("a file of ", source.format, " has no records");
}

}  // namespace cloze
