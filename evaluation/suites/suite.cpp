#include "evaluation/suites/suite.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/line_reader.h"
#include "data/reading/text_lines.h"
#include "evaluation/suites/declared_suite.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Paths of the folder's entries but hidden ones, in the order of their names.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string()[0] != '.') paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The items of a kind of suite; none for files of another kind.
template <class Kind>
std::optional<SuiteItems> items_by(std::optional<Kind> (*read)(const SuiteFiles&), const SuiteFiles& files) {
  if (auto items = read(files)) return SuiteItems(std::move(*items));
  return {};
}

/// The items by the first reader that knows the files.
std::optional<SuiteItems> read_items(const SuiteFiles& files) {
  if (auto items = items_by(read_declared, files)) return items;
  if (auto items = items_by(read_ranking, files)) return items;
  if (auto items = items_by(read_facts, files)) return items;
  if (auto items = items_by(read_reading, files)) return items;
  if (auto items = items_by(read_acquisition, files)) return items;
  if (auto items = items_by(read_word_similarity, files)) return items;
  if (auto items = items_by(read_analogies, files)) return items;
  return items_by(read_sentence_similarity, files);
}

/// Whether a file is a table of the ages at which words are known.
bool is_ages(const std::string& path) { return path.find(".csv") != std::string::npos && is_age_table(read_csv(path)); }

constexpr const char* kinds = "; docs/evaluation.md lists the kinds of suites";

/// Says what is wrong with a text that no reader knew by its first line: it is empty, or that line is none of its kind.
[[noreturn]] void refuse_text(const std::string& path) {
  LineReader lines(path);
  std::string where, first;
  for (std::string_view line; lines.next(line);) {
    if (is_blank(line)) continue;
    if (where.empty()) {
      where = lines.where();
      first = line;
      continue;
    }
    require<DataError>(!is_judged_pair(line), where, ": is not two words and a number, as line ", lines.number,
                       " is; write these, or remove the line");
    require<DataError>(!line.starts_with(": "), where, ": comes before the first section of analogies, line ",
                       lines.number, "; write `: NAME` before it, or remove the line");
  }
  require<DataError>(!where.empty(), path, ": is empty; get it again");
  fail<DataError>(path, ": is no suite of a known kind, for it begins with '", shortened(first), "'", kinds);
}

/// Says what is wrong with a file that no reader knew.
[[noreturn]] void refuse_file(const std::string& path) {
  const bool is_lines = is_json_lines(path);
  require<DataError>(is_lines || !first_line(path), path,
                     ": has JSON lines, and files of these are called NAME.jsonl; rename it");
  require<DataError>(is_lines || !is_ages(path), path,
                     ": has ages of words, but no contexts to judge them in; it belongs next to a cdi_childes.json",
                     kinds);
  if (!is_lines) refuse_text(path);
  const auto first = SuiteLines(path).next();
  require<DataError>(first.has_value(), path, ": is empty; get it again");
  std::string keys;
  for (const auto& [key, value] : first->object.items()) keys += (keys.empty() ? "" : ", ") + key;
  fail<DataError>(first->where, ": no kind of suite has lines with ", keys.empty() ? "no keys" : "the keys " + keys,
                  kinds);
}

/// Whether a text is a suite of embeddings.
bool is_known(const SuiteFile& text) {
  const SuiteFiles file(text.path());
  return read_word_similarity(file) || read_analogies(file) || read_sentence_similarity(file);
}

/// Says what is wrong with a file or a folder that no reader knew; of a folder by its first file of JSON lines, or by
/// the first text that is no suite among others that are.
[[noreturn]] void refuse(const SuiteFiles& files) {
  const auto& path = files.path;
  if (!files.is_folder) refuse_file(path);
  require<DataError>(!is_babylm_data(path), path, ": is BabyLM's evaluation data, which `cloze evaluate RUN --suite ",
                     path, "` answers; a suite is each set in it, such as full_eval/blimp_filtered (docs/babylm.md)");
  if (const auto unknown = std::ranges::find_if_not(files.texts, is_known);
      files.lines.empty() && unknown != files.texts.end() && std::ranges::any_of(files.texts, is_known))
    refuse_file(unknown->path());
  require<DataError>(!files.lines.empty(), path,
                     ": holds no suite, for it has no *.jsonl, and no *.txt or *.tsv that are all of one kind", kinds);
  refuse_file(files.lines[0].path());
}

}  // namespace

std::string suites_folder() {
  const auto* named = std::getenv("CLOZE_SUITES");
  return named != nullptr && *named != '\0' ? named : "suites";
}

std::string find_suite(const std::string& name, const std::string& option) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  const auto folder = suites_folder();
  std::vector<std::string> known;
  for (const auto& path : entries_of(folder)) {
    const auto suite = suite_name(path);
    if (suite == name || fs::path(path).filename() == name) return path;
    if (known.empty() || known.back() != suite) known.push_back(suite);
  }
  constexpr const char* how =
      "nothing is downloaded: put its file there, or name the file; docs/evaluation.md says where suites come from";
  const bool is_folder = fs::is_directory(folder, ignored);
  require<ConfigError>(is_folder, option, " ", shortened(name), ": no such file, and ", folder,
                       ", the folder of suites (CLOZE_SUITES names another), is not there; ", how);
  const auto near = did_you_mean(name, known);
  require<ConfigError>(near.empty(), option, " ", shortened(name), ": no such file, and no suite of ", folder, near);
  fail<ConfigError>(option, " ", shortened(name), ": no such file, and no suite of ", folder,
                    known.empty() ? ", which is empty" : ", which has " + shortened(listed(known)), "; ", how);
}

bool is_babylm_data(const std::string& folder) {
  std::error_code ignored;
  const auto has = [&](const char* part) { return fs::is_directory(fs::path(folder) / part, ignored); };
  return has("full_eval") || has("fast_eval");
}

Suite open_suite(const std::string& path) {
  require<DataError>(fs::exists(path), path, ": no such suite");
  const SuiteFiles files(path);
  auto items = read_items(files);
  if (!items) refuse(files);
  const auto* ranking = std::get_if<RankingSuite>(&*items);
  const auto name = ranking && !ranking->name.empty() ? ranking->name : suite_name(path);
  return {.name = name, .path = path, .items = std::move(*items)};
}

bool is_of_embeddings(const Suite& suite) {
  return std::holds_alternative<SimilaritySuite>(suite.items) || std::holds_alternative<AnalogySuite>(suite.items);
}

void require_new(const Suite& suite, std::span<const Suite> others, const std::string& option) {
  for (const auto& other : others) {
    std::error_code ignored;
    require<ConfigError>(!fs::equivalent(other.path, suite.path, ignored), option, " ", suite.path,
                         " is named twice, first as ", other.path, "; leave one out");
    require<ConfigError>(other.name != suite.name, option, " ", suite.path, " and ", other.path, " are both called ",
                         suite.name, "; rename one of them");
  }
}

namespace {

std::vector<std::string> metrics_of(const RankingSuite& suite) {
  std::vector<std::string> metrics;
  std::map<std::string, std::set<std::string>> paradigms;  // of items with an answer, by metric
  bool is_judged = false;
  for (const auto& item : suite.items) {
    is_judged = is_judged || item.preference;
    if (item.answer) paradigms[item.metric].insert(item.paradigm);
  }
  if (is_judged) metrics.emplace_back("spearman");
  for (const auto& [metric, names] : paradigms) {
    metrics.push_back(metric);
    if (names.size() > 1) metrics.push_back("micro_" + metric);
  }
  return metrics;
}
std::vector<std::string> metrics_of(const FactSuite&) { return {"p@1", "p@10", "mrr"}; }
std::vector<std::string> metrics_of(const ReadingSuite&) { return {"partial_r2", "delta_r2"}; }
std::vector<std::string> metrics_of(const AcquisitionSuite&) { return {"surprisal"}; }
std::vector<std::string> metrics_of(const SimilaritySuite&) { return {"spearman", "mean_cosine"}; }
std::vector<std::string> metrics_of(const AnalogySuite&) { return {"accuracy"}; }

}  // namespace

std::vector<std::string> suite_metrics(const Suite& suite) {
  return std::visit([](const auto& items) { return metrics_of(items); }, suite.items);
}

std::string suite_fault(const RunConfig& config, const Suite& suite, const SuiteOptions& options) {
  return std::visit([&](const auto& items) { return reason_unsupported(config, items, options); }, suite.items);
}

void check_fit(const LoadedRun& run, const Suite& suite, const SuiteOptions& options) {
  std::visit([&](const auto& items) { check_fit(run, items, options); }, suite.items);
}

SuiteResult run_suite(const LoadedRun& run, const Suite& suite, const SuiteOptions& options) {
  const auto fault = suite_fault(run.config, suite, options);
  require<ConfigError>(fault.empty(), run.folder, ": cannot answer ", suite.name, ": ", fault);
  auto result = std::visit([&](const auto& items) { return run_suite(run, items, options); }, suite.items);
  result.suite = suite.name;
  return result;
}

}  // namespace cloze
