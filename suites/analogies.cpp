#include "suites/analogies.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "data/line_reader.h"
#include "suites/embedding_figures.h"
#include "suites/json_lines.h"
#include "suites/statistics.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Right answers and questions, of each section.
struct Counts {
  std::vector<double> right{}, all{};
};

SuiteFigure figure_of(SuiteLevel level, const std::string& group, const Counts& counts) {
  const auto mean = clustered_mean(counts.right, counts.all);
  const auto count = static_cast<int64_t>(std::accumulate(counts.all.begin(), counts.all.end(), 0.0));
  const auto bounds = share_interval(mean, count);
  return {.level = level,
          .group = group,
          .metric = "accuracy",
          .value = mean.value,
          .low = bounds.low,
          .high = bounds.high,
          .count = count};
}

std::string phenomenon_of(const std::string& section) { return section.starts_with("gram") ? "syntactic" : "semantic"; }

std::vector<std::string> words_of(const AnalogySuite& suite) {
  std::vector<std::string> found;
  for (const auto& section : suite.sections)
    for (const auto& question : section.questions) found.insert(found.end(), question.begin(), question.end());
  return found;
}

}  // namespace

std::optional<AnalogySuite> read_analogies(const std::string& path) {
  if (fs::is_directory(path) || is_json_lines(path)) return {};
  LineReader lines(path);
  std::string_view line;
  if (!lines.next(line) || !line.starts_with(": ")) return {};
  AnalogySuite suite;
  do {
    if (line.empty()) continue;
    if (line.starts_with(": ")) {
      suite.sections.push_back({.name = std::string(line.substr(2))});
      continue;
    }
    std::istringstream text{std::string(line)};
    std::array<std::string, 4> question;
    std::string more;
    for (auto& word : question) text >> word;
    require<DataError>(!question[3].empty() && !(text >> more), lines.where(), ": is not a question of four words");
    suite.sections.back().questions.push_back(question);
  } while (lines.next(line));
  for (const auto& section : suite.sections)
    require<DataError>(!section.questions.empty(), path, ": the section '", section.name, "' has no questions");
  return suite;
}

std::string fault_of(const RunConfig& config, const AnalogySuite&, const SuiteOptions& options) {
  return embedding_fault(config, embedding_options(options));
}

std::vector<int64_t> nearest_analogies(const Tensor& vectors, const std::vector<std::array<int64_t, 3>>& questions) {
  constexpr size_t batch = 512;
  const auto norm = vectors.norm(2, -1, true);
  const auto unit = vectors / at::where(norm > 0, norm, at::ones_like(norm));
  std::vector<int64_t> nearest;
  for (size_t first = 0; first < questions.size(); first += batch) {
    const auto last = std::min(questions.size(), first + batch);
    std::array<std::vector<int64_t>, 3> indices;
    for (size_t i = first; i < last; ++i)
      for (size_t k = 0; k < 3; ++k) indices[k].push_back(questions[i][k]);
    const auto of = [&](size_t k) { return at::tensor(indices[k], at::kLong); };
    const auto wanted = unit.index_select(0, of(1)) - unit.index_select(0, of(0)) + unit.index_select(0, of(2));
    auto score = at::matmul(wanted, unit.t());  // the length of `wanted` does not change the order
    for (size_t k = 0; k < 3; ++k) score.scatter_(1, of(k).unsqueeze(1), -std::numeric_limits<double>::infinity());
    const auto best = score.argmax(1).contiguous();
    nearest.insert(nearest.end(), best.data_ptr<int64_t>(), best.data_ptr<int64_t>() + best.numel());
  }
  return nearest;
}

SuiteResult run_suite(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options) {
  const auto embedded = embed_distinct(run, words_of(suite), options);
  const auto place = [&](const std::string& word) {
    return static_cast<int64_t>(std::lower_bound(embedded.texts.begin(), embedded.texts.end(), word) -
                                embedded.texts.begin());
  };
  std::vector<std::array<int64_t, 3>> questions;
  for (const auto& section : suite.sections)
    for (const auto& [a, b, c, d] : section.questions) questions.push_back({place(a), place(b), place(c)});
  const auto nearest = nearest_analogies(embedded.vectors, questions);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  Counts all;
  std::map<std::string, Counts> phenomena;
  std::vector<SuiteFigure> sections;
  size_t number = 0;
  for (const auto& section : suite.sections) {
    int64_t asked = 0, right_answers = 0;
    for (const auto& question : section.questions) {
      const auto& answer = embedded.texts[static_cast<size_t>(nearest[number++])];
      const bool right = answer == question[3];
      result.items.push_back(
          {{"item", words(section.name, "/", asked)}, {"question", question}, {"answer", answer}, {"right", right}});
      ++asked;
      right_answers += right;
    }
    Counts own;
    for (auto* group : {&all, &phenomena[phenomenon_of(section.name)], &own}) {
      group->right.push_back(static_cast<double>(right_answers));
      group->all.push_back(static_cast<double>(asked));
    }
    sections.push_back(figure_of(SuiteLevel::paradigm, section.name, own));
  }
  result.figures = {figure_of(SuiteLevel::suite, "", all), isotropy_figure(embedded)};
  for (const auto& [name, counts] : phenomena)
    result.figures.push_back(figure_of(SuiteLevel::phenomenon, name, counts));
  result.figures.insert(result.figures.end(), sections.begin(), sections.end());
  return result;
}

}  // namespace cloze
