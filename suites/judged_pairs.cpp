#include "suites/judged_pairs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/log.h"
#include "core/spelling.h"
#include "suites/embedding_figures.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

bool is_text(std::string name) {
  for (const std::string packed : {".gz", ".xz"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  return name.ends_with(".txt") || name.ends_with(".tsv");
}

/// The correlation of one file; appends its pairs to `items`.
SuiteFigure figure_of(const JudgedFile& file, const EmbeddedTexts& embedded, SuitePredictions& items) {
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

void Repeats::add(const std::string& item, const LineReader& lines) {
  ++all_;
  const auto [first, is_new] = lines_.emplace(item, lines.number);
  if (!is_new && count_++ == 0)
    first_ = words("'", shortened(item), "' (", lines.where(), ", as in line ", first->second, ")");
}

std::vector<std::string> Repeats::notes(const std::string& kind) const {
  if (count_ == 0) return {};
  return {words(thousands(count_), " of ", thousands(all_), " ", kind, " repeat an earlier one, first ", first_,
                "; each is counted")};
}

std::vector<std::string> texts_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_text(entry.path().filename().string())) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> texts_of(const std::vector<JudgedFile>& files) {
  std::vector<std::string> texts;
  for (const auto& file : files)
    for (const auto& pair : file.pairs) {
      texts.push_back(pair.a);
      texts.push_back(pair.b);
    }
  return texts;
}

namespace {

/// Why a file has no correlation, as a sentence.
std::string constant_note(const JudgedFile& file) {
  const auto same = [&](const JudgedPair& pair) { return pair.judgement == file.pairs.front().judgement; };
  return words("no correlation of '", file.name, "', for its ",
               std::ranges::all_of(file.pairs, same) ? "judgements" : "similarities", " are all equal");
}

/// The mean of the correlations that there are; NaN where there are none.
SuiteFigure mean_of(const std::vector<SuiteFigure>& figures) {
  SuiteFigure mean{.metric = "spearman"};
  double sum = 0, files = 0;
  for (const auto& figure : figures) {
    if (std::isnan(figure.value)) continue;
    sum += figure.value;
    mean.count += figure.count;
    ++files;
  }
  mean.value = files > 0 ? sum / files : std::numeric_limits<double>::quiet_NaN();
  return mean;
}

}  // namespace

SuiteResult answer_pairs(const LoadedRun& run, const std::vector<JudgedFile>& files, const SuiteOptions& options) {
  const auto embedded = embed_distinct(run, texts_of(files), options);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  std::vector<SuiteFigure> figures;
  for (const auto& file : files) {
    figures.push_back(figure_of(file, embedded, result.items));
    result.notes.insert(result.notes.end(), file.notes.begin(), file.notes.end());
    if (std::isnan(figures.back().value))
      result.notes.push_back(constant_note(file) + (files.size() > 1 ? "; the mean is without it" : ""));
  }
  auto whole = figures.size() > 1 ? mean_of(figures) : figures.front();
  whole.level = SuiteLevel::suite;
  whole.group.clear();
  result.figures = {whole, isotropy_figure(embedded)};
  if (figures.size() > 1) result.figures.insert(result.figures.end(), figures.begin(), figures.end());
  return result;
}

}  // namespace cloze
