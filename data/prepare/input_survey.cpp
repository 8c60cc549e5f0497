#include "data/prepare/input_survey.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/contains.h"
#include "core/error.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/prepare/input_files.h"
#include "data/reading/columns.h"
#include "data/reading/decoder.h"
#include "data/reading/line_reader.h"
#include "data/reading/table_reader.h"
#include "data/reading/text_lines.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// What a file looks like: `a table`, `JSON`, `HTML`, `HTML or XML`, `RTF`; empty for prose.
struct Likeness {
  std::string kind{};
  bool is_certain = false;  ///< by its name or its first line, not by many lines
};

/// Whether a line begins with a text in lower case, whatever the case of its own letters.
bool begins_with(std::string_view line, std::string_view text) {
  const auto is_same = [](char other, char own) { return std::tolower(static_cast<unsigned char>(own)) == other; };
  return line.size() >= text.size() && std::equal(text.begin(), text.end(), line.begin(), is_same);
}

/// Whether a line begins with a tag or a comment of HTML or XML.
bool has_markup(std::string_view line) {
  return line.size() > 1 && line[0] == '<' &&
         (std::isalpha(static_cast<unsigned char>(line[1])) != 0 || std::string_view("/!?").find(line[1]) != line.npos);
}

/// What the first line of a file says that is no prose; empty where it says nothing.
std::string seems_to_begin(std::string_view line, const std::string& file) {
  if (line.starts_with("{\\rtf")) return "RTF";
  const auto next = line.substr(1);
  const bool is_list = line[0] == '[' && (is_blank(next) || std::string_view("{[\"").find(next[0]) != next.npos);
  const bool is_object = line[0] == '{' && !nlohmann::json::accept(line);  // a whole object is read as JSON lines
  if (is_list || is_object) return "JSON";
  if (begins_with(line, "<!doctype html") || begins_with(line, "<html")) return "HTML";
  return is_named_table(file) || std::count(line.begin(), line.end(), '\t') > 1 ? "a table" : "";
}

/// Whether a line is two columns. A speaker before the text, as in transcripts (`*MOT:`), is no column.
bool has_two_columns(std::string_view line) {
  const auto tab = line.find('\t');
  return tab != line.npos && line.find('\t', tab + 1) == line.npos && line[tab - 1] != ':';
}

/// Commas between the cells of a line, those in quotes not counted; none for a line that reads as a sentence: with a
/// space after a comma and a stop at its end.
int separating_commas(std::string_view line) {
  const bool is_sentence = line.find(", ") != line.npos && std::string_view(".!?").find(line.back()) != line.npos;
  int commas = 0;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    commas += c == ',' && !is_quoted ? 1 : 0;
  }
  return is_sentence ? 0 : commas;
}

/// Whether most lines have the same number of commas, two or more. `lines`: how many lines have each number of them.
bool are_rows(const std::map<int, int>& lines) {
  constexpr int enough = 8;
  int all = 0, rows = 0;
  for (const auto& [commas, count] : lines) {
    all += count;
    if (commas > 1) rows = std::max(rows, count);
  }
  return rows >= enough && 5 * rows >= 4 * all;
}

/// The likeness of a file, by its name and its first lines. Throws DataError for one that cannot be read as lines.
Likeness likeness_of(const std::string& file) {
  constexpr int enough = 4, looked_at = 50;  // lines that are a table or markup, and lines to look at
  LineReader lines(file, LoneReturn::ends_line);
  std::string_view line;
  int seen = 0, columns = 0, markup = 0;
  bool is_markup = true;  // at least every other line so far
  std::map<int, int> with_commas;
  while (seen < looked_at && lines.next(line)) {
    if (is_blank(line)) continue;
    const auto text = without_white_space_around(line);
    if (seen == 0) {
      if (text.starts_with("<doc id=")) return {};
      if (auto kind = seems_to_begin(text, file); !kind.empty()) {
        const bool is_certain = kind != "a table" || is_named_table(file);
        return {std::move(kind), is_certain};
      }
    }
    ++seen;
    columns += has_two_columns(text) ? 1 : 0;
    markup += has_markup(text) ? 1 : 0;
    is_markup = is_markup && 2 * markup >= seen;
    ++with_commas[separating_commas(text)];
  }
  if (columns == seen && columns >= enough) return {"a table"};
  if (is_markup && markup >= enough) return {"HTML or XML"};
  return {are_rows(with_commas) ? "a table" : ""};
}

/// How such a file is read as what it is.
const char* way_out_of(const std::string& kind) {
  if (kind == "RTF") return "save it as plain text (UTF-8)";
  if (kind.starts_with("HTML")) return "extract its text with a program for that";
  return kind == "a table"
             ? "name the column of its text with --field (CSV, TSV), or read it as pairs with --format pairs"
             : "write its text as JSON lines, or as pairs with --format pairs";
}

/// Whether the first lines of a file are lines of text.
bool begins_as_text(const std::string& file) {
  constexpr int looked_at = 50;
  try {
    LineReader lines(file);
    std::string_view line;
    for (int i = 0; i < looked_at && lines.next(line); ++i) continue;
    return true;
  } catch (const DataError&) {
    return false;
  }
}

/// A glob for files of a folder that are not named like one of them and begin as text, for as many as possible; empty
/// for none.
std::string glob_of_others(const std::vector<std::string>& files, const std::string& folder, const std::string& file) {
  std::map<std::string, std::vector<std::string>> named;  // by their globs
  for (const auto& name : files) {
    const fs::path path(name);
    const bool is_other = path.has_extension() && path.extension() != fs::path(file).extension();
    if (is_other && is_in(name, folder))
      named[(path.parent_path() / "*").string() + path.extension().string()].push_back(name);
  }
  std::vector<std::pair<size_t, std::string>> globs;
  for (const auto& [glob, names] : named)
    if (begins_as_text(names.front())) globs.emplace_back(names.size(), glob);
  const auto most =
      std::max_element(globs.begin(), globs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most == globs.end() ? "" : most->second;
}

}  // namespace

std::string name_elsewhere(const std::string& file, const std::vector<std::string>& folders) {
  auto name = file;
  for (const auto& folder : folders)
    if (is_in(file, folder)) name = file.substr(folder.size());
  name.erase(0, std::min(name.find_first_not_of("./"), name.size()));
  std::replace(name.begin(), name.end(), '/', '-');
  const auto ending = ending_of_text(file);
  return "converted/" + (name.ends_with(ending) ? name : name + ending);
}

std::string way_out_of_folder(const PrepareOptions& original, const PrepareOptions& named, const std::string& file) {
  const std::pair<const std::vector<std::string>&, const std::vector<std::string>&> sides[] = {
      {original.inputs, named.inputs},
      {original.targets, named.targets},
      {original.valid_inputs, named.valid_inputs},
      {original.valid_targets, named.valid_targets}};
  for (const auto& [folders, files] : sides)
    for (const auto& folder : folders) {
      if (!fs::is_directory(folder) || !is_in(file, folder)) continue;
      const auto glob = glob_of_others(files, folder, file);
      return concat("; the folder ", folder, " stands for all its files: name its text alone",
                    glob.empty() ? "" : concat(" by a glob, such as '", glob, "'"),
                    ", or leave it out with --skip-unreadable");
    }
  return "";
}

namespace {

/// The name in a list of the files of a format.
const char* name_in_list(TextFormat format) {
  switch (format) {
    case TextFormat::automatic:
    case TextFormat::text:
    case TextFormat::lines:
      break;
    case TextFormat::jsonl:
      return "JSON lines";
    case TextFormat::csv:
      return "CSV";
    case TextFormat::tsv:
      return "TSV";
    case TextFormat::arrow:
      return "Arrow";
    case TextFormat::parquet:
      return "Parquet";
    case TextFormat::wiki:
      return "WikiExtractor";
    case TextFormat::pairs:
      return "pairs";
  }
  return "text";
}

bool is_named_json(const std::string& file) { return uncompressed_name(file).ends_with(".json"); }

/// Looks at files of one side of the options.
class FileSurvey {
 public:
  FileSurvey(const PrepareOptions& options, const std::vector<std::string>& inputs)
      : options_(options), given_(inputs) {}

  SurveyedFile look_at(const std::string& file) const {
    SurveyedFile surveyed_file{.path = file, .kind = name_in_list(options_.format)};
    if (!can_be_read_again(file)) return surveyed_file;
    try {
      const bool decides = options_.format == TextFormat::automatic;
      const auto format = decides ? format_of(file, reader_of(options_)) : options_.format;
      surveyed_file.kind = name_in_list(format);
      if (!begins(file, format)) surveyed_file.kind = "empty";
      if (options_.skip_unreadable && !table_format_of(file)) require_encoding(file);
      if (decides && format == TextFormat::text && surveyed_file.kind == "text") look_at_prose(surveyed_file);
    } catch (const NotText& refusal) {
      surveyed_file.kind = refusal.kind;
      surveyed_file.fault = refusal.command.empty() ? refusal.what()
                                                    : concat(file, refusal.fault, ": mkdir -p converted && ",
                                                             refusal.command, shell_word(name_elsewhere(file, given_)));
    } catch (const DataError& refusal) {
      if (is_named_json(file)) surveyed_file.kind = "JSON metadata";
      surveyed_file.fault = refusal.what();
    }
    return surveyed_file;
  }

 private:
  /// Whether a file has a document. Throws DataError, as the reader of documents does, for a first one that cannot be
  /// read.
  bool begins(const std::string& file, TextFormat format) const {
    auto of_one = reader_of(options_, {file}, {});
    of_one.format = format;
    of_one.refuse_invalid_utf8 = false;
    RawDocument document;
    return DocumentReader(of_one).next(document);
  }

  /// Throws DataError for a file in another encoding, in which more is not UTF-8 than is beyond ASCII, or, where such
  /// bytes are refused, anything.
  void require_encoding(const std::string& file) const {
    std::optional<Decoder> decoder;
    if (!options_.encoding.empty()) decoder.emplace(options_.encoding);
    LineReader lines(file, LoneReturn::ends_line);
    uint64_t invalid = 0, others = 0, first = 0;
    for (std::string_view line; lines.next(line);) {
      const auto text = decoder ? decoder->utf8(line) : line;
      const auto repaired = replace_invalid_utf8(text, invalid);
      if (invalid > 0 && first == 0) first = lines.number;
      others += static_cast<uint64_t>(std::ranges::count_if(repaired, [](char c) { return (c & 0xC0) == 0xC0; }));
    }
    const uint64_t allowed = options_.invalid_utf8 == InvalidUtf8::refuse ? 0 : others - invalid;  // others: U+FFFD too
    if (invalid <= allowed) return;
    NotText refused(file, concat(":", first, ": is not UTF-8; name its encoding with --encoding"));
    refused.kind = "in another encoding";
    throw refused;
  }

  void look_at_prose(SurveyedFile& surveyed_file) const {
    const auto like = likeness_of(surveyed_file.path);
    if (like.kind.empty()) return;
    const bool is_table = is_named_table(surveyed_file.path);
    if (is_table && (options_.field || !options_.fields.empty() || !is_named(surveyed_file.path))) {
      surveyed_file.kind = uncompressed_name(surveyed_file.path).ends_with(".tsv") ? "TSV" : "CSV";
      begins(surveyed_file.path, TextFormat::csv);  // says which columns there are
    }
    if (!like.is_certain || is_named(surveyed_file.path)) {
      surveyed_file.like = like.kind;
      return;
    }
    surveyed_file.kind = like.kind == "JSON" && is_named_json(surveyed_file.path) ? "JSON metadata" : like.kind;
    surveyed_file.fault = concat(surveyed_file.path, ": is ", like.kind, ", not prose; ", way_out_of(like.kind),
                                 ", or read all files as prose with --format text");
  }

  bool is_named(const std::string& file) const { return contains(given_, file); }

  const PrepareOptions& options_;
  const std::vector<std::string>& given_;
};

/// How many files are of each kind, the most frequent one first: `62 text, 3 WikiExtractor, 1 CSV`.
std::string counts_of_kinds(const std::vector<SurveyedFile>& files) {
  std::map<std::string, size_t> counts;
  for (const auto& file : files) ++counts[file.kind];
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [kind, count] : counts) order.emplace_back(count, kind);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string list;
  for (const auto& [count, kind] : order) list += concat(list.empty() ? "" : ", ", count, " ", kind);
  return list;
}

/// Whether folders and globs, not only files, were named.
bool names_many(const std::vector<std::string>& inputs, const std::vector<std::string>& files) {
  return files.size() > 1 || (files.size() == 1 && inputs.size() == 1 && inputs[0] != files[0]);
}

/// Throws DataError for files that cannot be read: of one with its fault, of several after a warning for each.
[[noreturn]] void refuse_all(const std::vector<SurveyedFile>& all, const std::vector<SurveyedFile>& faults,
                             const PrepareOptions& original) {
  if (faults.size() == 1) {
    PrepareOptions named;
    for (const auto& file : all) named.inputs.push_back(file.path);
    const auto out = way_out_of_folder(original, named, faults[0].path);
    throw DataError(faults[0].fault + (out.empty() ? "; or leave it out with --skip-unreadable" : out));
  }
  for (const auto& file : faults) log_warning("data", file.fault);
  fail<DataError>(faults.size(), " of ", counted(all.size(), "file"), " (", counts_of_kinds(all),
                  ") cannot be read, each for the reason above; --field csv:NAME or jsonl:NAME names the text of one "
                  "kind of files; "
                  "write what else is to be read into another folder and name it too, or leave these files out with "
                  "--skip-unreadable");
}

}  // namespace

InputSurvey survey_of(PrepareOptions options, const PrepareOptions& original) {
  InputSurvey survey;
  if (options.format == TextFormat::pairs && !(options.targets.empty() && options.valid_targets.empty())) {
    survey.options = std::move(options);  // a file that is left out would leave its other side alone
    return survey;
  }
  std::vector<SurveyedFile> faults;
  const std::pair<std::vector<std::string>&, const std::vector<std::string>&> sides[] = {
      {options.inputs, original.inputs}, {options.valid_inputs, original.valid_inputs}};
  for (const auto& [files, of_user] : sides) {
    const bool is_whole = names_many(of_user, files) || options.skip_unreadable;
    survey.is_whole = survey.is_whole || names_many(of_user, files);
    const FileSurvey look(options, of_user);
    std::vector<std::string> readable;
    for (const auto& file : files) {
      auto one = look.look_at(file);
      const bool is_refused = is_whole && !one.fault.empty();
      if (is_refused)
        faults.push_back(one);
      else
        readable.push_back(file);
      survey.files.push_back(std::move(one));
    }
    files = std::move(readable);
  }
  if (faults.empty()) {
    survey.options = std::move(options);
    return survey;
  }
  if (!options.skip_unreadable) refuse_all(survey.files, faults, original);
  require<DataError>(!options.inputs.empty() && (original.valid_inputs.empty() || !options.valid_inputs.empty()),
                     faults.front().fault, "; with --skip-unreadable no file is left");
  survey.left_out = std::move(faults);
  survey.options = std::move(options);
  return survey;
}

void announce(const InputSurvey& survey) {
  if (survey.is_whole && !survey.options.for_scoring)
    log_info("data", concat(counted(survey.files.size(), "file"), ": ", counts_of_kinds(survey.files)));
  if (!survey.left_out.empty()) {
    std::string names;
    for (const auto& file : survey.left_out) names += (names.empty() ? "" : ", ") + file.path;
    log_warning("data", concat(survey.left_out.size(), " of ", counted(survey.files.size(), "file"), " left out (",
                               counts_of_kinds(survey.left_out), "): ", names));
  }
  std::vector<const SurveyedFile*> alike;
  for (const auto& file : survey.files)
    if (!file.like.empty()) alike.push_back(&file);
  if (alike.empty()) return;
  const auto& first = *alike.front();
  log_warning(
      "data",
      concat(first.path, alike.size() > 1 ? concat(" and ", counted(alike.size() - 1, "other file")) : "",
             alike.size() > 1 ? " look like " : " looks like ", first.like, alike.size() > 1 ? " and are" : " and is",
             " read as prose, markup and all; ", way_out_of(first.like), ", or confirm it with --format text"));
}

}  // namespace cloze
