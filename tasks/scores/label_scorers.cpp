#include <map>

#include "tasks/scores/label_scores.h"

namespace cloze {

std::vector<LabelPair> label_pairs(const ScoredItems& scored) {
  std::vector<LabelPair> pairs;
  pairs.reserve(scored.size());
  for (size_t i = 0; i < scored.size(); ++i)
    pairs.push_back({scored.items[i]->gold.label, scored.predictions[i]->answer.label});
  return pairs;
}

void add_label_names(TaskScorer& scorer, std::initializer_list<const char*> names, int64_t count) {
  for (const auto* name : names) scorer.metrics.push_back({.name = name, .count = count});
}

TaskScorer accuracy_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  std::vector<uint8_t> right;
  for (size_t i = 0; i < scored.size(); ++i)
    right.push_back(scored.kind->is_right(*scored.items[i], *scored.predictions[i], scored));
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

LabelMetrics label_metrics(const std::string& label, const LabelCounts& counts) {
  return {.label = label,
          .precision = counts.precision(),
          .recall = counts.recall(),
          .f1 = counts.f1(),
          .gold = counts.gold,
          .predicted = counts.predicted,
          .right = counts.right};
}

ItemGroups groups_of(const ScoredItems& scored) {
  ItemGroups groups;
  std::map<std::string_view, uint32_t> number;
  for (const auto* item : scored.items)
    groups.group_of.push_back(number.try_emplace(item->group, static_cast<uint32_t>(number.size())).first->second);
  groups.count = number.size();
  return groups;
}

void add_label_tables(const std::vector<LabelPair>& pairs, const TaskLabels& task, TaskScores& scores) {
  const auto labels = task.size();
  const auto slots = static_cast<size_t>(labels) + 1;  // the last is none of the labels
  const auto slot = [&](int64_t id) { return id == unknown_label ? slots - 1 : static_cast<size_t>(id); };
  std::vector<LabelCounts> counts(slots);
  bool has_unknown = false;
  for (const auto& [gold, predicted] : pairs) {
    ++counts[slot(gold)].gold;
    ++counts[slot(predicted)].predicted;
    if (gold == predicted) ++counts[slot(gold)].right;
    has_unknown |= gold == unknown_label || predicted == unknown_label;
  }
  for (size_t id = 0; id + 1 < slots; ++id) scores.per_label.push_back(label_metrics(task.names[id], counts[id]));
  if (labels > most_confused) return;
  auto& confusion = scores.confusion.emplace(Confusion{.labels = task.names});
  if (has_unknown) confusion.labels.emplace_back("(unknown)");
  confusion.counts.assign(confusion.labels.size(), std::vector<int64_t>(confusion.labels.size()));
  for (const auto& [gold, predicted] : pairs) ++confusion.counts[slot(gold)][slot(predicted)];
}

}  // namespace cloze
