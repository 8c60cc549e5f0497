#include "suites/word_similarity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "suites/embedding_figures.h"
#include "suites/json_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The fields of a line, separated by tabs or spaces.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    fields.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

/// Whether a file begins with a judged pair.
bool is_judged(const std::string& path) {
  SuiteText lines(path);
  std::string_view line;
  do {
    if (!lines.next(line)) return false;
  } while (is_blank_text(line));
  return is_judged_pair(line);
}

JudgedFile read_judged_words(const std::string& path) {
  JudgedFile file{.name = suite_name(path)};
  SuiteText lines(path);
  Repeats repeats;
  for (std::string_view line; lines.next(line);) {
    const auto fields = fields_of(line);
    if (fields.empty()) continue;
    const auto judgement = fields.size() == 3 ? number_of(fields[2]) : std::nullopt;
    require<DataError>(judgement.has_value(), lines.where(),
                       ": is not two words and a number, the judgement of people; write these, or remove the line");
    file.pairs.push_back({fields[0], fields[1], *judgement});
    const auto [a, b] = std::minmax(fields[0], fields[1]);  // similarity has no direction
    repeats.add(a + " " + b, lines);
  }
  file.notes = repeats.notes("pairs");
  require<DataError>(file.pairs.size() > 3, path, ": has ", file.pairs.size(),
                     " pairs, too few for a correlation; give at least 4");
  return file;
}

}  // namespace

bool is_judged_pair(std::string_view line) {
  const auto fields = fields_of(line);
  return fields.size() == 3 && number_of(fields[2]);
}

std::optional<WordSimilaritySuite> read_word_similarity(const std::string& path) {
  WordSimilaritySuite suite;
  if (!fs::is_directory(path)) {
    if (is_json_lines(path) || !is_judged(path)) return {};
    suite.files.push_back(read_judged_words(path));
    return suite;
  }
  const auto paths = texts_in(path);
  if (paths.empty() || !std::all_of(paths.begin(), paths.end(), is_judged)) return {};
  for (const auto& one : paths) suite.files.push_back(read_judged_words(one));
  return suite;
}

std::string fault_of(const RunConfig& config, const WordSimilaritySuite&, const SuiteOptions& options) {
  return embedding_fault(config, embedding_options(options));
}

void check_fit(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions&) {
  check_fit(run, texts_of(suite.files));
}

SuiteResult run_suite(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions& options) {
  return answer_pairs(run, suite.files, options);
}

}  // namespace cloze
