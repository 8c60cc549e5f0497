#pragma once
// A line of the log and of metrics.jsonl: means over the steps since the previous line.
#include "objectives/batch.h"

namespace cloze {

/// One loss, over the predictions of several steps.
struct LinePart {
  std::string name;
  double weight = 1, sum = 0;
  double total = 0;  ///< weights of the predictions, by which the sum is divided
  int64_t count = 0, correct = 0;
  bool has_accuracy = true;
  std::optional<BinaryCounts> binary{};  ///< counts of a binary classification
  /// Means over the predictions, of the loss by their weights; NaN, which is null in JSON, without any.
  double loss() const { return sum / total; }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(count); }
};

/// Sums since the previous line; a checkpoint between two lines saves them.
struct LogLine {
  int64_t steps = 0;
  double grad_norms = 0;  ///< sum of the gradient norms
  std::vector<LinePart> parts{};
  /// The weighted sum of the means of the parts that have predictions; NaN where none has.
  double loss() const;
  double grad_norm() const { return steps > 0 ? grad_norms / static_cast<double>(steps) : 0; }
  /// Adds the losses and the gradient norm of one step.
  void add(const std::vector<LossPart>& losses, double norm);
};

template <class V>
void describe(V& v, BinaryCounts& counts) {
  v("yes", counts.positives);
  v("answered", counts.predicted);
  v("both", counts.true_positives);
  v.or_else("detects", counts.detects, false);
}
template <class V>
void describe(V& v, LinePart& part) {
  v("name", part.name);
  v("weight", part.weight);
  v("sum", part.sum);
  v("count", part.count);
  v.unless("total", part.total, static_cast<double>(part.count));
  v("correct", part.correct);
  v.unless("has_accuracy", part.has_accuracy, true);
  v.maybe("yes_no", part.binary);
}
template <class V>
void describe(V& v, LogLine& line) {
  v("steps", line.steps);
  v("grad_norms", line.grad_norms);
  v("parts", line.parts);
}

}  // namespace cloze
