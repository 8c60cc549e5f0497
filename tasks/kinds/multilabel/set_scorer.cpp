// Metrics of sets of labels.
#include <array>

#include "tasks/scores/label_scores.h"

namespace cloze {

namespace {

/// Labels of an item, and those predicted for it, ascending.
using LabelSets = std::array<std::vector<int64_t>, 2>;

std::vector<LabelSets> label_sets(const ScoredItems& scored) {
  std::vector<LabelSets> sets;
  for (size_t i = 0; i < scored.size(); ++i)
    sets.push_back({scored.items[i]->gold.labels, scored.predictions[i]->answer.labels});
  return sets;
}

void count_sets(const LabelSets& sets, int64_t weight, std::vector<LabelCounts>& counts) {
  const auto& [gold, predicted] = sets;
  for (const auto id : gold) {
    if (id == unknown_label) continue;
    counts[static_cast<size_t>(id)].gold += weight;
    if (std::ranges::binary_search(predicted, id)) counts[static_cast<size_t>(id)].right += weight;
  }
  for (const auto id : predicted)
    if (id != unknown_label) counts[static_cast<size_t>(id)].predicted += weight;
}

}  // namespace

TaskScorer multilabel_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size()), labels = scored.labels->size();
  const auto cells = number_cells(label_sets(scored), scorer);
  scorer.metrics.push_back({.name = "accuracy", .is_proportion = true, .count = n});
  add_label_names(scorer,
                  {"precision_macro", "recall_macro", "f1_macro", "f1_macro_seen", "precision_micro", "recall_micro",
                   "f1_micro", "precision_weighted", "recall_weighted", "f1_weighted"},
                  n);
  scorer.values = [cells, labels](std::span<const int64_t> weights, std::span<double> values) {
    std::vector<LabelCounts> counts(static_cast<size_t>(labels));
    int64_t total = 0, exact = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      count_sets(cells[c], weights[c], counts);
      total += weights[c];
      if (cells[c][0] == cells[c][1]) exact += weights[c];
    }
    const LabelSummary s(counts, labels);
    std::ranges::copy(
        std::array{ratio_of(exact, total), s.macro.precision, s.macro.recall, s.macro.f1, s.f1_seen, s.all.precision(),
                   s.all.recall(), s.all.f1(), s.weighted.precision, s.weighted.recall, s.weighted.f1},
        values.begin());
  };
  return scorer;
}

void add_multilabel_table(const ScoredItems& scored, TaskScores& scores) {
  std::vector<LabelCounts> counts(static_cast<size_t>(scored.labels->size()));
  for (const auto& sets : label_sets(scored)) count_sets(sets, 1, counts);
  for (size_t id = 0; id < counts.size(); ++id)
    scores.per_label.push_back(label_metrics(scored.labels->names[id], counts[id]));
}

}  // namespace cloze
