// Areas under ROC curves.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/contains.h"
#include "tasks/figures/task_scorer.h"

namespace cloze {

namespace {

/// Items in ascending order of a label's probabilities.
struct ScoreOrder {
  std::vector<uint32_t> items{};
  std::vector<bool> ends_tie{};     ///< by place: the next item has another probability
  std::vector<bool> is_positive{};  ///< by place
  std::string label{};

  ScoreOrder(const ScoredItems& scored, int64_t id)
      : items(scored.size()), label(scored.labels->names[static_cast<size_t>(id)]) {
    std::vector<double> scores;
    for (const auto* prediction : scored.predictions)
      scores.push_back(prediction->probabilities[static_cast<size_t>(id)]);
    std::iota(items.begin(), items.end(), 0u);
    std::ranges::sort(items, {}, [&](uint32_t i) { return scores[i]; });
    for (size_t at = 0; at < items.size(); ++at) {
      ends_tie.push_back(at + 1 == items.size() || scores[items[at]] != scores[items[at + 1]]);
      const auto& gold = scored.items[items[at]]->gold;
      const bool is_one = gold.form == AnswerForm::label;
      is_positive.push_back(is_one ? gold.label == id : std::ranges::binary_search(gold.labels, id));
    }
  }

  bool has_both() const { return contains(is_positive, true) && contains(is_positive, false); }

  /// The probability that a positive item has a higher score than a negative one, ties a half: Mann and Whitney's U.
  double area(std::span<const int64_t> weights) const {
    double twice = 0, positives = 0, negatives = 0, tied_positives = 0, tied_negatives = 0;
    for (size_t at = 0; at < items.size(); ++at) {
      (is_positive[at] ? tied_positives : tied_negatives) += static_cast<double>(weights[items[at]]);
      if (!ends_tie[at]) continue;
      twice += tied_positives * (2 * negatives + tied_negatives);
      positives += tied_positives;
      negatives += tied_negatives;
      tied_positives = tied_negatives = 0;
    }
    const double pairs = positives * negatives;
    return pairs == 0 ? std::numeric_limits<double>::quiet_NaN() : twice / (2 * pairs);
  }
};

}  // namespace

TaskScorer area_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto labels = scored.labels->size();
  const bool is_binary = labels == 2 && scored.kind->form == AnswerForm::label;
  std::vector<ScoreOrder> orders;
  for (int64_t id = is_binary ? 1 : 0; id < labels; ++id) orders.emplace_back(scored, id);
  scorer.cells = scored.size();
  scorer.cell_of.resize(scored.size());
  std::iota(scorer.cell_of.begin(), scorer.cell_of.end(), 0u);
  scorer.cost = static_cast<double>(orders.size());
  ScoredMetric metric{.name = is_binary ? "auc" : "auc_macro", .count = static_cast<int64_t>(scored.size())};
  for (const auto& order : orders)
    if (metric.undefined.empty() && !order.has_both())
      metric.undefined = "all items, or none, are '" + order.label + "'";
  scorer.metrics = {metric};
  scorer.values = [orders = std::move(orders)](std::span<const int64_t> weights, std::span<double> values) {
    double sum = 0;
    for (const auto& order : orders) sum += order.area(weights);
    values[0] = sum / static_cast<double>(orders.size());
  };
  return scorer;
}

}  // namespace cloze
