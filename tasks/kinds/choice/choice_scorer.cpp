// Metrics of candidates.
#include "tasks/figures/label_scores.h"

namespace cloze {

TaskScorer choice_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  std::vector<uint8_t> right;
  for (const auto& [gold, chosen] : label_pairs(scored)) right.push_back(gold == chosen && gold != unknown_label);
  const auto cells = number_cells(right, scorer);
  scorer.metrics = {{.name = "accuracy", .is_proportion = true, .count = static_cast<int64_t>(scored.size())}};
  scorer.values = [cells](std::span<const int64_t> weights, std::span<double> values) {
    int64_t count = 0, hits = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      count += weights[c];
      if (cells[c] != 0) hits += weights[c];
    }
    values[0] = ratio_of(hits, count);
  };
  return scorer;
}

}  // namespace cloze
