#include "suites/judged_pairs.h"

#include <algorithm>
#include <filesystem>

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

SuiteResult answer_pairs(const LoadedRun& run, const std::vector<JudgedFile>& files, const SuiteOptions& options) {
  const auto embedded = embed_distinct(run, texts_of(files), options);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  std::vector<SuiteFigure> figures;
  for (const auto& file : files) figures.push_back(figure_of(file, embedded, result.items));
  auto whole = figures.front();
  if (figures.size() > 1) {
    whole = {.metric = "spearman"};
    for (const auto& figure : figures) {
      whole.value += figure.value / static_cast<double>(figures.size());
      whole.count += figure.count;
    }
  }
  whole.level = SuiteLevel::suite;
  whole.group.clear();
  result.figures = {whole, isotropy_figure(embedded)};
  if (figures.size() > 1) result.figures.insert(result.figures.end(), figures.begin(), figures.end());
  return result;
}

}  // namespace cloze
