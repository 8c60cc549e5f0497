#include "data/reading/reader.h"

#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "data/reading/columns.h"
#include "data/reading/decoder.h"
#include "data/reading/line_reader.h"
#include "data/reading/pair_reader.h"
#include "data/reading/table_reader.h"
#include "data/reading/text_lines.h"
#include "data/reading/prepared_folder.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

constexpr size_t escape_size = 6;  // of \\uXXXX

/// The code unit of an escape at `at`, or -1.
int32_t escaped_unit(std::string_view json, size_t at) {
  const auto escape = json.substr(at, escape_size);
  if (escape.size() < escape_size || escape[0] != '\\' || escape[1] != 'u') return -1;
  int32_t unit = 0;
  for (const char digit : escape.substr(2)) {
    const auto c = static_cast<unsigned char>(digit);
    if (std::isxdigit(c) == 0) return -1;
    unit = 16 * unit + (std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10);
  }
  return unit;
}

bool is_high(int32_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low(int32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/// A text of JSON in which every run of bytes that are not UTF-8, and every escaped half of a character without its
/// other half (a lone surrogate, `\ud83d`), is U+FFFD; empty where there is none.
std::string with_whole_characters(std::string_view json) {
  uint64_t replaced = 0;
  const auto valid = replace_invalid_utf8(json, replaced);
  std::string out;
  for (size_t at = 0; at < valid.size();) {
    const auto unit = escaped_unit(valid, at);
    size_t size = valid[at] == '\\' ? 2 : 1;  // an escaped backslash escapes nothing
    if (unit >= 0)
      size = is_high(unit) && is_low(escaped_unit(valid, at + escape_size)) ? 2 * escape_size : escape_size;
    const bool is_half = size == escape_size && (is_high(unit) || is_low(unit));
    out += is_half ? "\\ufffd" : valid.substr(at, size);
    replaced += is_half ? 1 : 0;
    at += size;
  }
  return replaced > 0 ? out : "";
}

constexpr size_t max_document = 16 << 20;

/// Whether the first line of a table names a column.
bool names_column(const std::string& name, std::string_view first, const std::string& column) {
  const auto names = table_cells(first, table_separator(name, first));
  return std::ranges::any_of(names, [&](const auto& own) { return without_white_space_around(own) == column; });
}

/// A table by its name is one where its first line names the column of the text, and where a column was asked for, so
/// that a wrong name is refused.
TextFormat detect_format(const LineReader& lines, std::string_view first, const ReaderOptions& options) {
  const auto& name = lines.name;
  const auto plain = uncompressed_name(name);
  if (lines.is_json_list()) return TextFormat::jsonl;
  if (first.substr(0, 8) == "<doc id=") return TextFormat::wiki;
  if (plain.ends_with(".jsonl") || plain.ends_with(".ndjson")) return TextFormat::jsonl;
  if (!first.empty() && first[0] == '{' && nlohmann::json::accept(first)) return TextFormat::jsonl;
  if (!is_named_table(name)) return TextFormat::text;
  const auto table = plain.ends_with(".tsv") ? TextFormat::tsv : TextFormat::csv;
  const bool is_asked_for = options.field || options.fields.contains(table);
  return is_asked_for || names_column(name, first, field_of(options, table)) ? table : TextFormat::text;
}

/// Whether Cloze made a folder, or is making it: prepared text, a run, or one of `own`.
bool is_made_by_cloze(const fs::path& folder, const std::vector<std::string>& own) {
  std::error_code ignored;  // a folder of `own` that does not exist
  for (const auto& one : own)
    if (fs::equivalent(folder, one, ignored)) return true;
  const bool half_made = folder.extension() == ".partial" && fs::exists(folder / "key.json", ignored);
  return half_made || fs::exists(folder / "run.yaml", ignored) || is_token_store(folder.string());
}

/// Appends the tables of a folder of `datasets`; false for another folder.
bool add_dataset(const std::string& folder, std::vector<std::string>& files) {
  const auto tables = files_of_dataset(folder);
  if (tables) files.insert(files.end(), tables->begin(), tables->end());
  return tables.has_value();
}

/// Warns that the splits in a folder are one text.
void warn_of_splits(const std::string& folder) {
  log_warning("data", concat(folder,
                             ": the splits of this folder of datasets are read as one text; name the folder of "
                             "each one to train on, and held-out text with --valid"));
}

/// Appends the files of a folder and of the folders in it, sorted by path, without hidden ones and what Cloze made.
void add_folder(const std::string& folder, const std::vector<std::string>& own, std::vector<std::string>& files) {
  if (add_dataset(folder, files)) return;
  const size_t before = files.size();
  std::vector<std::string> left_out;
  std::error_code error, ignored;  // a link to nothing is no file
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const auto& path = entry->path();
    const bool hidden = path.filename().string().starts_with(".");
    if (entry->is_directory(ignored)) {
      const bool is_made = !hidden && is_made_by_cloze(path, own);
      if (is_made) left_out.push_back(path.string());
      if (hidden || is_made || add_dataset(path.string(), files)) entry.disable_recursion_pending();
      continue;
    }
    const auto name = path.filename().string();
    if (name == "dataset_dict.json") warn_of_splits(path.parent_path().string());
    if (describes_dataset(name)) continue;
    const bool is_lock = path.string().ends_with(".partial.lock");
    if (!hidden && !is_lock && entry->is_regular_file(ignored)) files.push_back(path.string());
  }
  require<DataError>(!error, folder, ": cannot be read (", error.message(), ")");
  std::sort(left_out.begin(), left_out.end());
  require<DataError>(files.size() > before, folder, ": is a folder without files",
                     left_out.empty() ? "" : concat(" but those of Cloze (", first_few(left_out), ")"),
                     "; name one with text");
  if (!left_out.empty())
    log_info("data", concat("prepared text and runs in ", folder, " are left out: ", first_few(left_out)));
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
}

/// The texts under a key or a path of keys; in lists, those of every element.
struct FoundTexts {
  std::vector<const std::string*> texts{};
  bool has_key = false;
  const nlohmann::json* other = nullptr;  ///< a value that is no text
};

/// Adds the texts at the end of a path in a value. A null in a list is no text; one on the way is the value.
void find_texts(const nlohmann::json& value, std::string_view path, bool in_list, FoundTexts& at_path) {
  if (value.is_array()) {
    at_path.has_key = at_path.has_key || path.empty();
    for (const auto& element : value) find_texts(element, path, true, at_path);
  } else if (path.empty() || value.is_null()) {
    at_path.has_key = true;
    if (value.is_string())
      at_path.texts.push_back(&value.get_ref<const std::string&>());
    else if (!in_list || !value.is_null())
      at_path.other = &value;
  } else if (value.is_object()) {
    const size_t end = std::min(path.find('.'), path.size());
    const auto inner = value.find(std::string(path.substr(0, end)));
    if (inner != value.end()) find_texts(*inner, path.substr(std::min(end + 1, path.size())), in_list, at_path);
  }
}

FoundTexts texts_at(const nlohmann::json& object, const std::string& field) {
  FoundTexts at_path;
  if (const auto value = object.find(field); value != object.end())
    find_texts(*value, "", false, at_path);
  else
    find_texts(object, field, false, at_path);
  return at_path;
}

/// Appends the keys whose value is a text, those of inner objects and of lists as paths.
void collect_texts(const nlohmann::json& value, const std::string& path, std::vector<std::string>& keys) {
  if (value.is_string()) keys.push_back(path);
  if (value.is_array() && !value.empty()) collect_texts(value.front(), path, keys);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) collect_texts(inner, path.empty() ? key : path + "." + key, keys);
}

/// How a line of JSON lines gets a text, by the keys that have one.
std::string remedy_of_line(const nlohmann::json& object) {
  constexpr size_t most = 8;
  std::vector<std::string> keys;
  collect_texts(object, "", keys);
  if (keys.empty()) return "; no other key of the line has a text: give it one, or leave the line out";
  std::string list;
  for (size_t i = 0; i < std::min(keys.size(), most); ++i) list += (i > 0 ? ", " : "") + keys[i].substr(0, 60);
  return concat("; name the key of the text with --field; its texts: ", list, keys.size() > most ? ", ..." : "");
}

/// What a value is that is no text.
const char* kind_of(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  return value.is_number() ? "a number" : "an object";
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs, const std::vector<std::string>& own) {
  std::vector<std::string> files;
  for (const auto& input : inputs) {
    if (input == "-" || fs::is_regular_file(input) || fs::is_fifo(input) || fs::is_character_file(input)) {
      files.push_back(input);
      continue;
    }
    if (fs::is_directory(input)) {
      add_folder(input, own, files);
      continue;
    }
    glob_t matches{};
    const int status = glob(input.c_str(), GLOB_MARK, nullptr, &matches);
    const bool pattern = input.find_first_of("*?[") != std::string::npos;
    size_t before = files.size();
    for (size_t i = 0; status == 0 && i < matches.gl_pathc; ++i)
      if (!std::string_view(matches.gl_pathv[i]).ends_with("/")) files.emplace_back(matches.gl_pathv[i]);
    globfree(&matches);
    require<DataError>(files.size() > before, input, pattern ? ": no file matches this pattern" : ": no such file",
                       "; check the name");
  }
  require<DataError>(!files.empty(), "no text was given; name files, globs, or - for standard input");
  return files;
}

uint64_t input_bytes(const std::vector<std::string>& inputs) {
  uint64_t total = 0;
  for (const auto& file : expand_inputs(inputs)) {
    std::error_code ignored;
    if (uncompressed_name(file) != file || !fs::is_regular_file(file, ignored) || table_format_of(file)) return 0;
    total += fs::file_size(file, ignored);
  }
  return total;
}

std::string field_of(const ReaderOptions& options, TextFormat format) {
  const auto found = options.fields.find(format);
  return found != options.fields.end() ? found->second : options.field.value_or(default_field);
}

TextFormat format_of(const std::string& file, const ReaderOptions& options) {
  if (const auto table = table_format_of(file)) return *table;
  std::optional<Decoder> decoder;
  if (!options.encoding.empty()) decoder.emplace(options.encoding);
  LineReader lines(file, LoneReturn::ends_line, UINT64_MAX, JsonList::as_objects);
  std::string_view line;
  while (lines.next(line))
    if (!is_blank(line)) return detect_format(lines, decoder ? decoder->utf8(line) : line, options);
  return detect_format(lines, "", options);
}

struct DocumentReader::Impl {
  ReaderOptions options;
  std::vector<std::string> files;
  size_t next_file = 0;
  std::unique_ptr<LineReader> lines;
  std::unique_ptr<PairReader> pairs;
  std::unique_ptr<TableReader> table;
  std::unique_ptr<ColumnReader> column;
  std::unique_ptr<Decoder> decoder;
  ColumnRow row;
  uint64_t rows = 0;  // of `column` so far
  TextFormat format = TextFormat::automatic;
  std::string title;
  bool in_document = false;
  uint64_t documents = 0, done_bytes = 0, invalid = 0, split = 0, incomplete = 0;
  uint64_t skipped = 0, nulls = 0;
  LinePlace first_invalid, first_skipped, first_null;

  bool open_next() {
    if (lines) done_bytes += lines->bytes;
    lines.reset();
    table.reset();
    column.reset();
    if (next_file == files.size()) return false;
    if (options.format == TextFormat::pairs)
      pairs = std::make_unique<PairReader>(options, options.targets.empty() ? "" : options.targets[next_file]);
    const auto& file = files[next_file++];
    const bool decides = options.format == TextFormat::automatic;
    format = decides ? table_format_of(file).value_or(TextFormat::automatic) : options.format;
    in_document = false;
    rows = 0;
    if (format == TextFormat::arrow || format == TextFormat::parquet)
      column = open_column({file, format, field_of(options, format)});
    else
      lines = open_lines(file);
    return true;
  }

  std::unique_ptr<LineReader> open_lines(const std::string& file) const {
    const auto rule = format == TextFormat::pairs ? LoneReturn::ends_if_no_feeds : LoneReturn::ends_line;
    const bool may_be_json =
        format == TextFormat::automatic || format == TextFormat::jsonl || format == TextFormat::pairs;
    return std::make_unique<LineReader>(file, rule, UINT64_MAX, may_be_json ? JsonList::as_objects : JsonList::as_text);
  }

  /// The name of the file that is read, and the number of its line or row that was read last.
  const std::string& file_name() const { return lines ? lines->name : files[next_file - 1]; }
  uint64_t number() const { return lines ? lines->number : rows; }
  std::string where() const { return lines ? lines->where() : concat(file_name(), ":", rows); }

  /// `file`: with the line that was read last.
  void add(std::string_view text, RawDocument& document, const std::string& file) {
    const size_t bad = find_invalid_utf8(text);
    document.file = next_file - 1;
    if (bad == std::string_view::npos) {
      document.lines.emplace_back(text);
    } else {
      require<DataError>(!options.refuse_invalid_utf8, file, ":", number(), ": byte ", bad + 1,
                         " of the line is not valid UTF-8; name the encoding of the text (--encoding latin1, if it is "
                         "Latin-1), or let it be replaced with --invalid-utf8 replace");
      if (first_invalid.file.empty()) first_invalid = {.file = file, .number = number()};
      document.lines.push_back(replace_invalid_utf8(text, invalid));
    }
    document.bytes += document.lines.back().size();
  }

  void add(std::string_view text, RawDocument& document) { add(text, document, file_name()); }

  std::string_view decoded(std::string_view line) const { return decoder ? decoder->utf8(line) : line; }

  void add_pair(std::string_view source, std::string_view target, RawDocument& document) {
    if (is_blank(source) || is_blank(target)) {
      ++incomplete;
      return;
    }
    add(source, document);
    const auto file = pairs->target_file();
    add(file.empty() ? target : decoded(target), document, file.empty() ? lines->name : file);
  }

  /// Reads one line; true if it completes a document, or starts the next.
  bool take(std::string_view line, RawDocument& document) {
    switch (format) {
      case TextFormat::pairs:
        return take_pair(line, document);
      case TextFormat::jsonl:
        return take_json(line, document);
      case TextFormat::csv:
      case TextFormat::tsv:
        return take_record(line, document);
      case TextFormat::wiki:
        return take_wiki(line, document);
      case TextFormat::arrow:
      case TextFormat::parquet:  // take_row
      case TextFormat::automatic:
      case TextFormat::text:
      case TextFormat::lines:
        break;
    }
    if (is_blank(line)) return options.document != DocumentUnit::file && !document.lines.empty();
    add(line, document);
    return options.document == DocumentUnit::line;
  }

  /// Whether a line is JSON but for bytes that are not UTF-8, or halves of characters, and is skipped therefore. Throws
  /// DataError where these are refused.
  bool is_skipped(std::string_view line) {
    const auto valid = with_whole_characters(line);
    if (valid.empty() || !parse_json(valid).is_object()) return false;
    require<DataError>(!options.refuse_invalid_utf8, lines->where(), ": not a JSON object", json_line_fault(line),
                       "; write its text as UTF-8, or let such lines be skipped with --invalid-utf8 replace");
    if (skipped++ == 0) first_skipped = {.file = lines->name, .number = lines->number};
    return true;
  }

  bool take_pair(std::string_view line, RawDocument& document) {
    const bool is_json = options.targets.empty() && !line.empty() && line[0] == '{';
    if (is_json && !parse_json(line).is_object() && is_skipped(line)) return false;
    pairs->read(*lines, line,
                [&](std::string_view source, std::string_view target) { add_pair(source, target, document); });
    return !document.lines.empty();
  }

  bool take_wiki(std::string_view line, RawDocument& document) {
    if (line.substr(0, 8) == "<doc id=") {
      const auto start = line.find("title=\""), end = line.rfind("\">");
      title = start == std::string_view::npos || end == std::string_view::npos || end < start + 7
                  ? ""
                  : std::string(line.substr(start + 7, end - start - 7));
      in_document = true;
      return !document.lines.empty();
    }
    if (line.substr(0, 6) == "</doc>") {
      in_document = false;
      return !document.lines.empty();
    }
    // The title is repeated as the first line; it is not a sentence.
    if (!in_document || is_blank(line) || (document.lines.empty() && line == title)) return false;
    add(line, document);
    return false;
  }

  bool take_json(std::string_view line, RawDocument& document) {
    if (is_blank(line)) return false;
    const auto where = lines->where();
    const auto object = parse_json(line);
    if (!object.is_object()) {
      if (is_skipped(line)) return false;
      fail<DataError>(where, ": not a JSON object", json_line_fault(line), "; JSON lines have one object per line");
    }
    const auto field = field_of(options, format);
    const auto at_field = texts_at(object, field);
    require<DataError>(at_field.has_key, where, ": has no key '", field, "'", remedy_of_line(object));
    if (at_field.other && at_field.other->is_null() && options.skip_null) {
      count_null();
      return false;
    }
    if (at_field.other)
      fail<DataError>(where, ": '", field, "' is ", kind_of(*at_field.other), ", not a text", remedy_of_line(object),
                      at_field.other->is_null() ? " (--skip-null leaves such lines out)" : "");
    for (const auto* text : at_field.texts) add_lines(*text, where, document);
    return !document.lines.empty();
  }

  bool take_record(std::string_view line, RawDocument& document) {
    if (!table)
      table = std::make_unique<TableReader>(lines->name, field_of(options, format), format == TextFormat::tsv);
    if (const auto text = table->read(line, lines->number)) add_lines(*text, lines->where(), document);
    return !document.lines.empty();
  }

  void count_null() {
    if (nulls++ == 0) first_null = {.file = file_name(), .number = number()};
  }

  /// Reads a row of a column, whose texts are a document; false at the end of the file.
  bool take_row(RawDocument& document) {
    if (interrupted) throw Interrupted("stopped while text was read; run the same command again");
    if (!column->next(row)) return false;
    ++rows;
    if (row.texts.empty() && row.has_null) count_null();
    for (const auto& text : row.texts) {
      done_bytes += text.size();
      add_lines(text, where(), document);
    }
    return true;
  }

  /// The lines of a text that are not blank.
  void add_lines(std::string_view text, const std::string& where, RawDocument& document) {
    require_no_nul(text, where);
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find_first_of("\n\r", begin), text.size());
      const auto part = text.substr(begin, end - begin);
      if (!is_blank(part)) add(part, document);
      begin = end + 1;
    }
  }

  bool next(RawDocument& document) {
    document.clear();
    std::string_view line;
    for (;;) {
      if (!lines && !column && !open_next()) return false;
      if (column) {
        if (!take_row(document) && !open_next()) return false;
        if (!document.lines.empty()) return true;
        continue;
      }
      if (!lines->next(line)) {
        if (pairs) pairs->end(*lines);
        if (table) table->end();
        if (!open_next() && document.lines.empty()) return false;
        if (!document.lines.empty()) return true;  // the end of a file ends its document
        continue;
      }
      line = decoded(line);
      if (format == TextFormat::automatic) {
        if (is_blank(line)) continue;
        format = detect_format(*lines, line, options);
      }
      if (take(line, document)) return true;
      if (document.bytes > max_document) {
        ++split;
        return true;
      }
    }
  }
};

DocumentReader::DocumentReader(const ReaderOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  if (!options.encoding.empty()) impl_->decoder = std::make_unique<Decoder>(options.encoding);
  impl_->files = expand_inputs(options.inputs);
  if (!options.targets.empty()) impl_->options.targets = expand_inputs(options.targets);
  require<ConfigError>(options.targets.empty() || impl_->options.targets.size() == impl_->files.size(),
                       impl_->files.front(), ": ", impl_->files.size(), " source files were given with ",
                       impl_->options.targets.size(), " target files; name one target for each source");
}
DocumentReader::~DocumentReader() = default;
bool DocumentReader::next(RawDocument& document) {
  if (!impl_->next(document)) return false;
  document.number = impl_->documents++;
  return true;
}
bool DocumentReader::sentences_given() const {
  return impl_->options.format == TextFormat::lines || impl_->options.format == TextFormat::pairs;
}
uint64_t DocumentReader::incomplete_pairs() const { return impl_->incomplete; }
uint64_t DocumentReader::bytes() const { return impl_->done_bytes + (impl_->lines ? impl_->lines->bytes : 0); }
uint64_t DocumentReader::invalid_utf8() const { return impl_->invalid; }
LinePlace DocumentReader::first_invalid() const { return impl_->first_invalid; }
uint64_t DocumentReader::skipped_lines() const { return impl_->skipped; }
LinePlace DocumentReader::first_skipped() const { return impl_->first_skipped; }
uint64_t DocumentReader::null_rows() const { return impl_->nulls; }
LinePlace DocumentReader::first_null() const { return impl_->first_null; }
uint64_t DocumentReader::split_documents() const { return impl_->split; }

}  // namespace cloze
