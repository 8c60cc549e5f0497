#include "suites/word_similarity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "data/line_reader.h"
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
  LineReader lines(path);
  std::string_view line;
  if (!lines.next(line)) return false;
  const auto fields = fields_of(line);
  return fields.size() == 3 && number_of(fields[2]);
}

JudgedFile read_judged(const std::string& path) {
  JudgedFile file{.name = suite_name(path)};
  LineReader lines(path);
  for (std::string_view line; lines.next(line);) {
    const auto fields = fields_of(line);
    if (fields.empty()) continue;
    const auto judgement = fields.size() == 3 ? number_of(fields[2]) : std::nullopt;
    require<DataError>(judgement.has_value(), lines.where(), ": is not two words and a number");
    file.pairs.push_back({fields[0], fields[1], *judgement});
  }
  require<DataError>(file.pairs.size() > 3, path, ": has ", file.pairs.size(),
                     " pairs, too few for a correlation; give at least 4");
  return file;
}

SuiteFigure figure_of(const JudgedFile& file, const EmbeddedTexts& embedded, std::vector<nlohmann::json>& items) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<double> judgements;
  for (const auto& pair : file.pairs) {
    pairs.emplace_back(pair.a, pair.b);
    judgements.push_back(pair.judgement);
  }
  const auto cosines = embedded.cosines_of(pairs);
  for (size_t i = 0; i < pairs.size(); ++i)
    items.push_back({{"item", words(file.name, "/", i)},
                     {"a", pairs[i].first},
                     {"b", pairs[i].second},
                     {"judgement", judgements[i]},
                     {"cosine", cosines[i]}});
  auto figure = correlation_figure(cosines, judgements);
  figure.level = SuiteLevel::paradigm;
  figure.group = file.name;
  return figure;
}

}  // namespace

std::optional<WordSimilaritySuite> read_word_similarity(const std::string& path) {
  WordSimilaritySuite suite;
  if (!fs::is_directory(path)) {
    if (is_json_lines(path) || !is_judged(path)) return {};
    suite.files.push_back(read_judged(path));
    return suite;
  }
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file() && entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (paths.empty() || !std::all_of(paths.begin(), paths.end(), is_judged)) return {};
  for (const auto& one : paths) suite.files.push_back(read_judged(one));
  return suite;
}

std::string fault_of(const RunConfig& config, const WordSimilaritySuite&, const SuiteOptions& options) {
  return embedding_fault(config, embedding_options(options));
}

SuiteResult run_suite(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions& options) {
  std::vector<std::string> texts;
  for (const auto& file : suite.files)
    for (const auto& pair : file.pairs) {
      texts.push_back(pair.a);
      texts.push_back(pair.b);
    }
  const auto embedded = embed_distinct(run, std::move(texts), options);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  std::vector<SuiteFigure> files;
  for (const auto& file : suite.files) files.push_back(figure_of(file, embedded, result.items));
  auto whole = files.front();
  if (files.size() > 1) {
    whole = {.metric = "spearman"};
    for (const auto& file : files) {
      whole.value += file.value / static_cast<double>(files.size());
      whole.count += file.count;
    }
  }
  whole.level = SuiteLevel::suite;
  whole.group.clear();
  result.figures = {whole, isotropy_figure(embedded)};
  if (files.size() > 1) result.figures.insert(result.figures.end(), files.begin(), files.end());
  return result;
}

}  // namespace cloze
