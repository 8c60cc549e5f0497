#include "suites/suite.h"

#include <filesystem>

#include "core/error.h"
#include "suites/json_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Takes the items of a file if a reader knew its kind.
template <class Items>
bool take(std::optional<Items> found, SuiteItems& items) {
  if (found) items = std::move(*found);
  return found.has_value();
}

/// Says what is wrong with a file that no reader knew.
[[noreturn]] void refuse(const std::string& path) {
  constexpr const char* kinds = "; docs/evaluation.md lists the kinds of suites";
  require<DataError>(!fs::is_directory(path), path, ": holds no suite, for it has no *.jsonl of a known kind", kinds);
  require<DataError>(is_json_lines(path), path, ": is no suite of a known kind", kinds);
  const auto first = SuiteLines(path).next();
  require<DataError>(first.has_value(), path, ": is empty; get it again");
  std::string keys;
  for (const auto& [key, value] : first->object.items()) keys += (keys.empty() ? "" : ", ") + key;
  fail<DataError>(first->where, ": no kind of suite has lines with ", keys.empty() ? "no keys" : "the keys " + keys,
                  kinds);
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

std::string suite_fault(const RunConfig& config, const Suite& suite, const SuiteOptions& options) {
  return std::visit([&](const auto& items) { return fault_of(config, items, options); }, suite.items);
}

SuiteResult run_suite(const LoadedRun& run, const Suite& suite, const SuiteOptions& options) {
  const auto fault = suite_fault(run.config, suite, options);
  require<ConfigError>(fault.empty(), run.folder, ": cannot answer ", suite.name, ": ", fault);
  auto result = std::visit([&](const auto& items) { return run_suite(run, items, options); }, suite.items);
  result.suite = suite.name;
  return result;
}

}  // namespace cloze
