// Areas under curves of the probabilities of labels.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/contains.h"
#include "tasks/scores/score_order.h"

namespace cloze {

ScoreOrder::ScoreOrder(const std::vector<double>& scores, const std::vector<bool>& positive) : items(scores.size()) {
  std::iota(items.begin(), items.end(), 0u);
  std::ranges::sort(items, {}, [&](uint32_t i) { return scores[i]; });
  for (size_t at = 0; at < items.size(); ++at) {
    ends_tie.push_back(at + 1 == items.size() || scores[items[at]] != scores[items[at + 1]]);
    is_positive.push_back(positive[items[at]]);
  }
}

bool ScoreOrder::has_both() const { return contains(is_positive, true) && contains(is_positive, false); }

double ScoreOrder::area(std::span<const int64_t> weights) const {
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

double ScoreOrder::average_precision(std::span<const int64_t> weights) const {
  double sum = 0, positives = 0, all = 0, tied_positives = 0;
  for (size_t at = items.size(); at-- > 0;) {
    const auto weight = static_cast<double>(weights[items[at]]);
    all += weight;
    if (is_positive[at]) tied_positives += weight;
    if (at > 0 && !ends_tie[at - 1]) continue;
    positives += tied_positives;
    if (all > 0) sum += tied_positives * positives / all;
    tied_positives = 0;
  }
  return positives == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / positives;
}

TaskScorer scorer_by_item(const ScoredItems& scored) {
  TaskScorer scorer;
  scorer.cells = scored.size();
  scorer.cell_of.resize(scored.size());
  std::iota(scorer.cell_of.begin(), scorer.cell_of.end(), 0u);
  return scorer;
}

namespace {

ScoreOrder order_by_label(const ScoredItems& scored, int64_t id) {
  std::vector<double> scores;
  std::vector<bool> positive;
  for (size_t i = 0; i < scored.size(); ++i) {
    const auto& gold = scored.items[i]->gold;
    scores.push_back(scored.predictions[i]->probabilities[static_cast<size_t>(id)]);
    positive.push_back(gold.form == AnswerForm::label ? gold.label == id : std::ranges::binary_search(gold.labels, id));
  }
  return {scores, positive};
}

}  // namespace

TaskScorer area_scorer(const ScoredItems& scored) {
  auto scorer = scorer_by_item(scored);
  const auto labels = scored.labels->size();
  const bool is_binary = labels == 2 && scored.kind->form == AnswerForm::label;
  const auto n = static_cast<int64_t>(scored.size());
  ScoredMetric area{.name = is_binary ? "auc" : "auc_macro", .count = n};
  ScoredMetric precision{.name = is_binary ? "average_precision" : "average_precision_macro", .count = n};
  std::vector<ScoreOrder> orders;
  for (int64_t id = is_binary ? 1 : 0; id < labels; ++id) {
    const auto& order = orders.emplace_back(order_by_label(scored, id));
    const auto& name = scored.labels->names[static_cast<size_t>(id)];
    if (area.undefined.empty() && !order.has_both()) area.undefined = "all items, or none, are '" + name + "'";
    if (precision.undefined.empty() && !contains(order.is_positive, true))
      precision.undefined = "no item is '" + name + "'";
  }
  scorer.cost = 2 * static_cast<double>(orders.size());
  scorer.metrics = {area, precision};
  scorer.values = [orders = std::move(orders)](std::span<const int64_t> weights, std::span<double> values) {
    double areas = 0, precisions = 0;
    for (const auto& order : orders) {
      areas += order.area(weights);
      precisions += order.average_precision(weights);
    }
    values[0] = areas / static_cast<double>(orders.size());
    values[1] = precisions / static_cast<double>(orders.size());
  };
  return scorer;
}

}  // namespace cloze
