#pragma once
// Metrics of labels of items, whether each has one or a set of them.
#include <initializer_list>
#include <span>
#include <vector>

#include "tasks/scores/task_scorer.h"

namespace cloze {

/// Means over labels.
struct LabelMeans {
  double precision = 0, recall = 0, f1 = 0;
  void add(const LabelCounts& label, double weight) {
    precision += weight * label.precision();
    recall += weight * label.recall();
    f1 += weight * label.f1();
  }
  void divide(double by) {
    for (auto* mean : {&precision, &recall, &f1}) *mean = by == 0 ? 0 : *mean / by;
  }
};

/// Sums and means over the task's labels.
struct LabelSummary {
  LabelCounts all{};
  LabelMeans macro{}, weighted{};
  int64_t seen = 0;  ///< labels of an item or of a prediction
  double f1_seen = 0;

  /// `labels`: of the task, among which those that do not occur count 0.
  LabelSummary(std::span<const LabelCounts> counts, int64_t labels) {
    for (const auto& label : counts) {
      all.gold += label.gold;
      all.predicted += label.predicted;
      all.right += label.right;
      macro.add(label, 1);
      weighted.add(label, static_cast<double>(label.gold));
      if (label.gold + label.predicted > 0) ++seen;
    }
    f1_seen = seen == 0 ? 0 : macro.f1 / static_cast<double>(seen);
    macro.divide(static_cast<double>(labels));
    weighted.divide(static_cast<double>(all.gold));
  }
};

/// The gold label and the predicted one of each item.
std::vector<LabelPair> label_pairs(const ScoredItems& scored);

/// Adds metrics of so many items.
void add_label_names(TaskScorer& scorer, std::initializer_list<const char*> names, int64_t count);

}  // namespace cloze
