#include "data/input_survey.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/contains.h"
#include "core/error.h"
#include "core/log.h"
#include "core/shell_word.h"
#include "core/text.h"
#include "data/likeness.h"
#include "data/line_reader.h"
#include "data/table_reader.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// Whether a file has a path that a walk of this folder gives it.
bool is_in(const std::string& file, const std::string& folder) {
  return file.starts_with(folder.ends_with("/") ? folder : folder + "/");
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

std::string way_out_of_folder(const PrepareOptions& given, const PrepareOptions& named, const std::string& file) {
  const std::pair<const std::vector<std::string>&, const std::vector<std::string>&> sides[] = {
      {given.inputs, named.inputs},
      {given.targets, named.targets},
      {given.valid_inputs, named.valid_inputs},
      {given.valid_targets, named.valid_targets}};
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

bool is_named_json(const std::string& file) { return unpacked_name(file).ends_with(".json"); }

/// Looks at files of one side of the options.
class FileSurvey {
 public:
  FileSurvey(const PrepareOptions& options, const std::vector<std::string>& given) : options_(options), given_(given) {}

  SurveyedFile look_at(const std::string& file) const {
    SurveyedFile surveyed_file{.path = file, .kind = name_in_list(options_.format)};
    if (!can_be_read_again(file)) return surveyed_file;
    try {
      const auto field = options_.field.value_or(ReaderOptions().field);
      const bool decides = options_.format == TextFormat::automatic;
      const auto format = decides ? format_of(file, field) : options_.format;
      surveyed_file.kind = name_in_list(format);
      if (!begins(file, format)) surveyed_file.kind = "empty";
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

  void look_at_prose(SurveyedFile& surveyed_file) const {
    const auto like = likeness_of(surveyed_file.path);
    if (like.kind.empty()) return;
    const bool is_table = is_named_table(surveyed_file.path);
    if (is_table && (options_.field || !is_named(surveyed_file.path))) {
      surveyed_file.kind = unpacked_name(surveyed_file.path).ends_with(".tsv") ? "TSV" : "CSV";
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
bool names_many(const std::vector<std::string>& given, const std::vector<std::string>& files) {
  return files.size() > 1 || (files.size() == 1 && given.size() == 1 && given[0] != files[0]);
}

/// Throws DataError for files that cannot be read: of one with its fault, of several after a warning for each.
[[noreturn]] void refuse_all(const std::vector<SurveyedFile>& all, const std::vector<SurveyedFile>& faults,
                             const PrepareOptions& given) {
  if (faults.size() == 1) {
    PrepareOptions named;
    for (const auto& file : all) named.inputs.push_back(file.path);
    const auto out = way_out_of_folder(given, named, faults[0].path);
    throw DataError(faults[0].fault + (out.empty() ? "; or leave it out with --skip-unreadable" : out));
  }
  for (const auto& file : faults) log_warning("data", file.fault);
  fail<DataError>(faults.size(), " of ", counted(all.size(), "file"), " (", counts_of_kinds(all),
                  ") cannot be read, each for the reason above; write what is to be read of them into another folder "
                  "and name it too, or leave them out with --skip-unreadable");
}

}  // namespace

InputSurvey survey_of(PrepareOptions options, const PrepareOptions& given) {
  InputSurvey survey;
  if (options.format == TextFormat::pairs && !(options.targets.empty() && options.valid_targets.empty())) {
    survey.options = std::move(options);  // a file that is left out would leave its other side alone
    return survey;
  }
  std::vector<SurveyedFile> faults;
  const std::pair<std::vector<std::string>&, const std::vector<std::string>&> sides[] = {
      {options.inputs, given.inputs}, {options.valid_inputs, given.valid_inputs}};
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
  if (!options.skip_unreadable) refuse_all(survey.files, faults, given);
  require<DataError>(!options.inputs.empty() && (given.valid_inputs.empty() || !options.valid_inputs.empty()),
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
