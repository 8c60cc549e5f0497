#pragma once
// What scores are computed from: items reduced to cells, which a bootstrap weighs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tasks/scores/scores.h"

namespace cloze {

struct ScoredMetric {
  std::string name{};
  std::string undefined{};     ///< why it has no value, where it has none
  bool is_proportion = false;  ///< of independent units that are right or wrong: its interval is Wilson's
  bool has_interval = true;
  int64_t count = 0;
};

/// Metrics that are functions of how often each kind of unit occurs. Units, which a bootstrap draws, are items or
/// groups of items; those that count alike are one cell, so that drawing units is drawing counts of cells.
struct TaskScorer {
  std::vector<ScoredMetric> metrics{};
  std::vector<uint32_t> cell_of{};  ///< [U], by unit
  size_t cells = 0;
  std::vector<uint32_t> unit_of{};  ///< [items]; empty: each item is a unit
  double cost = 1;                  ///< of a call by cell, in units of a regression's
  /// The metrics of units of which cell c occurs weights[c] times; NaN: undefined. May be called by several threads.
  std::function<void(std::span<const int64_t> weights, std::span<double> values)> values{};
};

/// Predictions and what is right, for scorers.
struct ScoredItems {
  AnyTaskKind kind;
  std::vector<const TaskItem*> items{};
  std::vector<const TaskPrediction*> predictions{};
  const TaskLabels* labels = nullptr;
  const MetricOptions* options = nullptr;
  SquadVersion squad = SquadVersion::automatic;  ///< of all items, also where these are some of them
  std::string unjudged{};                        ///< why no score is of any use; empty: they are
  std::vector<uint64_t> cluster_of{};            ///< [items], clusters_of_items
  size_t size() const { return items.size(); }
};

/// Numbers units with equal keys alike, from 0 in the order of the keys.
template <class Key>
std::vector<Key> number_cells(const std::vector<Key>& key_of, TaskScorer& scorer) {
  auto keys = key_of;
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  scorer.cells = keys.size();
  scorer.cell_of.reserve(key_of.size());
  for (const auto& key : key_of)
    scorer.cell_of.push_back(static_cast<uint32_t>(std::ranges::lower_bound(keys, key) - keys.begin()));
  return keys;
}

/// Groups of items by number, in the order of their first items.
struct ItemGroups {
  std::vector<uint32_t> group_of{};
  size_t count = 0;
};
ItemGroups groups_of(const ScoredItems& scored);

/// 2 right / (gold + predicted) and its like; 0 for a denominator of 0, as scikit-learn's `zero_division`.
inline double ratio_of(int64_t part, int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// Counts of a label, or of a type of entities.
struct LabelCounts {
  int64_t gold = 0, predicted = 0, right = 0;
  double precision() const { return ratio_of(right, predicted); }
  double recall() const { return ratio_of(right, gold); }
  double f1() const { return ratio_of(2 * right, gold + predicted); }
};
LabelMetrics label_metrics(const std::string& label, const LabelCounts& counts);

/// The share of items that are right.
TaskScorer accuracy_scorer(const ScoredItems& scored);
/// Areas under curves, of labels with probabilities.
TaskScorer area_scorer(const ScoredItems& scored);
/// What the probabilities of one label are worth.
TaskScorer calibration_scorer(const ScoredItems& scored);

/// A gold label and a predicted one; unknown_label: none of the task's.
using LabelPair = std::array<int64_t, 2>;

/// Tables of pairs: scores by label, and the confusion.
void add_label_tables(const std::vector<LabelPair>& pairs, const TaskLabels& labels, TaskScores& scores);

}  // namespace cloze
