#include "suites/suite.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/spelling.h"
#include "data/line_reader.h"
#include "suites/find_suite.h"
#include "suites/json_lines.h"
#include "suites/judged_pairs.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Takes the items of a file if a reader knew its kind.
template <class Items>
bool take(std::optional<Items> found, SuiteItems& items) {
  if (found) items = std::move(*found);
  return found.has_value();
}

/// Whether a file is a table of the ages at which words are known.
bool is_ages(const std::string& path) { return path.find(".csv") != std::string::npos && is_age_table(read_csv(path)); }

constexpr const char* kinds = "; docs/evaluation.md lists the kinds of suites";

/// Says what is wrong with a text that no reader knew by its first line: it is empty, or that line is none of its kind.
[[noreturn]] void refuse_text(const std::string& path) {
  LineReader lines(path);
  std::string where, first;
  for (std::string_view line; lines.next(line);) {
    if (is_blank_text(line)) continue;
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
bool is_known(const std::string& text) {
  return read_word_similarity(text) || read_analogies(text) || read_sentence_similarity(text);
}

/// Says what is wrong with a file or a folder that no reader knew; of a folder by its first file of JSON lines, or by
/// the first text that is no suite among others that are.
[[noreturn]] void refuse(const std::string& path) {
  if (!fs::is_directory(path)) refuse_file(path);
  require<DataError>(!is_babylm_data(path), path, ": is BabyLM's evaluation data, which `cloze evaluate RUN --suite ",
                     path, "` answers; a suite is each set in it, such as full_eval/blimp_filtered (docs/babylm.md)");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file() && is_json_lines(entry.path().filename().string()))
      files.push_back(entry.path().string());
  const auto texts = texts_in(path);
  if (const auto unknown = std::ranges::find_if_not(texts, is_known);
      files.empty() && unknown != texts.end() && std::ranges::any_of(texts, is_known))
    refuse_file(*unknown);
  require<DataError>(!files.empty(), path,
                     ": holds no suite, for it has no *.jsonl, and no *.txt or *.tsv that are all of one kind", kinds);
  refuse_file(*std::min_element(files.begin(), files.end()));
}

}  // namespace

Suite open_suite(const std::string& path) {
  require<DataError>(fs::exists(path), path, ": no such suite");
  Suite suite{.name = suite_name(path), .path = path, .items{}};
  auto& items = suite.items;
  if (take(read_ranking(path), items) || take(read_facts(path), items) || take(read_reading(path), items) ||
      take(read_acquisition(path), items) || take(read_word_similarity(path), items) ||
      take(read_analogies(path), items) || take(read_sentence_similarity(path), items))
    return suite;
  refuse(path);
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

std::string suite_fault(const RunConfig& config, const Suite& suite, const SuiteOptions& options) {
  return std::visit([&](const auto& items) { return fault_of(config, items, options); }, suite.items);
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
