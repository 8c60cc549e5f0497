#include "evaluation/suites/analogies.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "core/spelling.h"
#include "data/reading/text_lines.h"
#include "evaluation/suites/embedding_scores.h"
#include "evaluation/suites/json_lines.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

namespace {

/// Right answers and questions, of each section.
struct Counts {
  std::vector<double> right{}, all{};
};

Score score_of(SuiteLevel level, const std::string& group, const Counts& counts) {
  const auto mean = clustered_mean(counts.right, counts.all);
  const auto count = static_cast<int64_t>(std::accumulate(counts.all.begin(), counts.all.end(), 0.0));
  return {.level = level,
          .group = group,
          .metric = "accuracy",
          .value = mean.value,
          .interval = fraction_interval(mean, count),
          .count = count};
}

std::string phenomenon_of(const std::string& section) { return section.starts_with("gram") ? "syntactic" : "semantic"; }

std::vector<std::string> words_of(const AnalogyFile& file) {
  std::vector<std::string> words;
  for (const auto& section : file.sections)
    for (const auto& question : section.questions) words.insert(words.end(), question.begin(), question.end());
  return words;
}

bool is_section(std::string_view line) { return line.starts_with(": "); }

/// The questions of a file that begins with a section.
AnalogyFile read_questions(const std::string& path) {
  SuiteText lines(path);
  AnalogyFile file{.name = suite_name(path)};
  Repeats repeats;
  std::map<std::string, std::string> lines_of_names;  // where each section begins
  for (std::string_view line; lines.next(line);) {
    if (is_blank(line)) continue;
    require<DataError>(line.find_first_not_of(": ") != line.npos, lines.where(),
                       ": the section has no name; write `: NAME`, or remove the line");
    if (is_section(line)) {
      const auto name = std::string(line.substr(2));
      const auto [first, is_new] = lines_of_names.emplace(name, lines.where());
      require<DataError>(is_new, lines.where(), ": the section '", shortened(name), "' is there twice, first in ",
                         first->second, "; join the two, or give one another name");
      file.sections.push_back({.name = name});
      continue;
    }
    std::istringstream text{std::string(line)};
    std::array<std::string, 4> question;
    std::string more;
    for (auto& word : question) text >> word;
    require<DataError>(
        !question[3].empty() && !(text >> more), lines.where(),
        ": is not a question of four words; write `a b c d`, for a is to b as c is to d, or remove the line");
    file.sections.back().questions.push_back(question);
    const auto& [a, b, c, d] = question;
    repeats.add(concat(a, " ", b, " ", c, " ", d), lines);
  }
  file.notes = repeats.notes("questions");
  for (const auto& section : file.sections)
    require<DataError>(!section.questions.empty(), path, ": the section '", section.name, "' has no questions");
  return file;
}

/// The place of a text in a sorted list that has it.
int64_t place_of(const std::string& text, const std::vector<std::string>& sorted) {
  return std::lower_bound(sorted.begin(), sorted.end(), text) - sorted.begin();
}

/// The answers to the questions of a file, in their order, among its words.
std::vector<std::string> answers_of(const AnalogyFile& file, const EmbeddedTexts& embedded) {
  auto candidates = words_of(file);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<int64_t> places;
  for (const auto& word : candidates) places.push_back(place_of(word, embedded.texts));
  std::vector<std::array<int64_t, 3>> questions;
  for (const auto& section : file.sections)
    for (const auto& [a, b, c, d] : section.questions)
      questions.push_back({place_of(a, candidates), place_of(b, candidates), place_of(c, candidates)});
  const auto vectors = embedded.vectors.index_select(0, at::tensor(places, at::kLong));
  std::vector<std::string> answers;
  for (const auto at : nearest_analogies(vectors, questions)) answers.push_back(candidates[static_cast<size_t>(at)]);
  return answers;
}

/// The questions of a file with a single possible answer, since all its other words are their own.
int64_t count_certain(const AnalogyFile& file) {
  const auto all = words_of(file);
  const size_t candidates = std::set<std::string>(all.begin(), all.end()).size();
  int64_t certain = 0;
  for (const auto& section : file.sections)
    for (const auto& question : section.questions)
      certain += std::set<std::string>(question.begin(), question.begin() + 3).size() + 1 == candidates;
  return certain;
}

/// Right answers and questions of the suite, of its phenomena and of each section.
struct AllCounts {
  Counts suite{};
  std::map<std::string, Counts> phenomena{};
  std::vector<std::pair<std::string, Counts>> sections{};

  void add(const std::string& name, const std::string& phenomenon, int64_t right, int64_t count) {
    sections.emplace_back(name, Counts{});
    for (auto* group : {&suite, &phenomena[phenomenon], &sections.back().second}) {
      group->right.push_back(static_cast<double>(right));
      group->all.push_back(static_cast<double>(count));
    }
  }
};

/// Counts the right answers to the questions of a file, and appends its items. `prefix`: of the names of its sections.
void evaluate_file(const AnalogyFile& file, const std::string& prefix, const EmbeddedTexts& embedded, AllCounts& counts,
                   SuiteResult& result) {
  const auto answers = answers_of(file, embedded);
  size_t number = 0;
  for (const auto& section : file.sections) {
    const auto name = prefix + section.name;
    int64_t count = 0, right_answers = 0;
    for (const auto& question : section.questions) {
      const auto& answer = answers[number++];
      const bool right = answer == question[3];
      const auto item = concat(name, "/", count);
      result.items.push_back({{"item", item}, {"question", question}, {"answer", answer}, {"right", right}});
      result.proportions.front().items.push_back({.item = item, .cluster = name, .credit = right ? 1.0 : 0.0});
      ++count;
      right_answers += right;
    }
    counts.add(name, phenomenon_of(section.name), right_answers, count);
  }
}

}  // namespace

std::optional<AnalogySuite> read_analogies(const SuiteFiles& files) {
  const auto begins_with_section = [](const SuiteFile& file) { return is_section(file.first()); };
  if (files.texts.empty() || !std::ranges::all_of(files.texts, begins_with_section)) return {};
  AnalogySuite suite;
  for (const auto& file : files.texts) suite.files.push_back(read_questions(file.path()));
  return suite;
}

std::string reason_unsupported(const RunConfig& config, const AnalogySuite&, const SuiteOptions& options) {
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

void check_fit(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions&) {
  for (const auto& file : suite.files) check_fit(run, words_of(file));
}

SuiteResult run_suite(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options) {
  std::vector<std::string> texts;
  for (const auto& file : suite.files) {
    const auto own = words_of(file);
    texts.insert(texts.end(), own.begin(), own.end());
  }
  const auto embedded = embed_distinct(run, std::move(texts), options);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  result.proportions = {ProportionItems{.metric = "accuracy", .is_of_clusters = false}};
  AllCounts counts;
  int64_t certain = 0;
  for (const auto& file : suite.files) {
    evaluate_file(file, suite.files.size() > 1 ? file.name + "/" : "", embedded, counts, result);
    result.notes.insert(result.notes.end(), file.notes.begin(), file.notes.end());
    certain += count_certain(file);
  }
  if (certain > 0)
    result.notes.push_back(concat(certain, " of ", result.items.size(),
                                  " questions have a single possible answer, since the other words of their file are "
                                  "their own, and every model gives it; leave them out, or add questions with others"));
  result.scores = {score_of(SuiteLevel::suite, "", counts.suite), isotropy_score(embedded)};
  for (const auto& [name, own] : counts.phenomena) result.scores.push_back(score_of(SuiteLevel::phenomenon, name, own));
  for (const auto& [name, own] : counts.sections) result.scores.push_back(score_of(SuiteLevel::paradigm, name, own));
  return result;
}

}  // namespace cloze
