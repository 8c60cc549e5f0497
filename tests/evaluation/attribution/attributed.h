#pragma once
// Networks with the head of a task, and rows of words for them.
#include "evaluation/attribution/methods.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "tests/support/small.h"

namespace cloze {

inline std::shared_ptr<Network> explained_network(const ModelConfig& model, const ObjectiveConfig& head) {
  auto network = std::make_shared<Network>(model, Objectives{head});
  initialize(collect_params(*network), 0.3, false, Rng(1));
  for (auto [name, param] : collect_params(*network)) {
    param.set_frozen(true);
    if (param.value().dim() == 2) param.value().mul_(0.3 / param.value().std());  // heads begin with small weights
  }
  network->eval();
  return network;
}

inline ClassificationConfig three_labels() {
  ClassificationConfig config;
  config.labels = {"bad", "fair", "good"};
  return config;
}

/// A row of ids 5 ... 21 between two others, which stand for its special tokens.
inline TaskRow row_of_words(int64_t words, int32_t first = 4) {
  TaskRow row;
  row.ids = {2};
  for (int64_t t = 0; t < words; ++t) row.ids.push_back(static_cast<int32_t>((first + 5 * t) % 17 + 5));
  row.ids.push_back(3);
  row.first_begin = 1;
  row.first_end = row.second_begin = row.second_end = words + 1;
  return row;
}

/// Each token of the text as a word.
inline Explained single_tokens(const TaskRow& row) {
  Explained of{.name = "t"};
  for (auto at = row.first_begin; at < row.first_end; ++at)
    of.words.push_back({.text = std::to_string(row.ids[static_cast<size_t>(at)]), .positions = {at}});
  return of;
}

/// A row of single-token words for a network of three labels, the second of which is explained.
struct OneRow {
  explicit OneRow(int64_t words, const ModelConfig& model = small())
      : network(explained_network(model, three_labels())),
        rows{row_of_words(words)},
        explained{single_tokens(rows[0])} {}
  ScoredRows in() const { return {*network, objectives, rows, scores, /*baseline=*/4}; }
  Attribution attribution(const AttributionOptions& options) const {
    return attributions_of(in(), explained, options).at(0);
  }
  /// The score with these words alone.
  double score_of(const std::vector<bool>& present) const {
    return score_variants(in(), {with_words(0, explained[0], rows[0], present)}).at(0).score;
  }
  Objectives objectives{three_labels()};
  std::shared_ptr<Network> network;
  std::vector<TaskRow> rows;
  std::vector<RowScore> scores{{.row = 0, .column = 1, .among = ProbabilityAmong::labels}};
  std::vector<Explained> explained;
};

}  // namespace cloze
