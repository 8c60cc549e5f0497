#include "suites/sentence_similarity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "suites/embedding_figures.h"
#include "suites/json_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The heads of the columns, or the keys: two texts and their judgement.
using Heads = std::array<const char*, 3>;
constexpr std::array<Heads, 2> known_heads{Heads{"sentence_A", "sentence_B", "relatedness_score"},
                                           Heads{"sentence1", "sentence2", "score"}};

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (size_t at = 0; at <= line.size();) {
    const auto end = std::min(line.find('\t', at), line.size());
    cells.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

/// The columns of texts and judgement in the head of a table; none for another head.
std::optional<std::array<size_t, 3>> columns_of(const std::vector<std::string>& head) {
  for (const auto& heads : known_heads) {
    std::array<size_t, 3> columns{};
    for (size_t i = 0; i < 3; ++i)
      columns[i] = static_cast<size_t>(std::find(head.begin(), head.end(), heads[i]) - head.begin());
    if (*std::max_element(columns.begin(), columns.end()) < head.size()) return columns;
  }
  return {};
}

void add_pair(JudgedFile& file, const std::string& where, JudgedPair pair) {
  require<DataError>(!is_blank_text(pair.a) && !is_blank_text(pair.b), where, ": one of the two sentences is empty");
  require<DataError>(std::isfinite(pair.judgement), where, ": the judgement is not a finite number");
  file.pairs.push_back(std::move(pair));
}

std::optional<JudgedFile> read_table(const std::string& path) {
  SuiteText lines(path);
  std::string_view line;
  if (!lines.next(line)) return {};
  const auto columns = columns_of(cells_of(line));
  if (!columns) return {};
  JudgedFile file{.name = suite_name(path)};
  while (lines.next(line)) {
    if (line.empty()) continue;
    const auto cells = cells_of(line);
    require<DataError>(*std::max_element(columns->begin(), columns->end()) < cells.size(), lines.where(), ": has ",
                       cells.size(), " columns, fewer than the head of the table");
    const auto& text = cells[(*columns)[2]];
    double judgement = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), judgement);
    require<DataError>(error == std::errc() && end == text.data() + text.size(), lines.where(), ": '", text,
                       "' is not a number");
    add_pair(file, lines.where(), {cells[(*columns)[0]], cells[(*columns)[1]], judgement});
  }
  return file;
}

std::optional<JudgedFile> read_lines(const std::string& path) {
  const auto first = first_line(path);
  const auto& [a, b, score] = known_heads[1];
  if (!first || !first->has(a) || !first->has(b) || !first->has(score)) return {};
  JudgedFile file{.name = suite_name(path)};
  SuiteLines lines(path);
  while (const auto line = lines.next())
    add_pair(file, line->where, {line->text(a), line->text(b), line->number(score)});
  return file;
}

/// The JSON lines of a folder, by name.
std::vector<std::string> json_lines_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_json_lines(entry.path().filename().string()))
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The pairs of a file; none for one of another kind.
std::optional<JudgedFile> read_judged_sentences(const std::string& path) {
  auto file = is_json_lines(path) ? read_lines(path) : read_table(path);
  require<DataError>(!file || file->pairs.size() > 3, path, ": has too few pairs for a correlation; give at least 4");
  return file;
}

}  // namespace

std::optional<SentenceSimilaritySuite> read_sentence_similarity(const std::string& path) {
  auto paths = fs::is_directory(path) ? texts_in(path) : std::vector{path};
  if (paths.empty()) paths = json_lines_in(path);
  SentenceSimilaritySuite suite;
  for (const auto& one : paths) {
    auto file = read_judged_sentences(one);
    if (!file) return {};
    suite.files.push_back(std::move(*file));
  }
  if (suite.files.empty()) return {};
  return suite;
}

std::string fault_of(const RunConfig& config, const SentenceSimilaritySuite&, const SuiteOptions& options) {
  return embedding_fault(config, embedding_options(options));
}

void check_fit(const LoadedRun& run, const SentenceSimilaritySuite& suite, const SuiteOptions&) {
  check_fit(run, texts_of(suite.files));
}

SuiteResult run_suite(const LoadedRun& run, const SentenceSimilaritySuite& suite, const SuiteOptions& options) {
  return answer_pairs(run, suite.files, options);
}

}  // namespace cloze
