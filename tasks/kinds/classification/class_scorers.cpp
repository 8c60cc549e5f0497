// Metrics of one label of an item: all are functions of the confusion.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/scores/label_scores.h"

namespace cloze {

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// Counts by label, of labels that occur alone.
struct SparseConfusion {
  std::vector<int64_t> ids{};                    ///< ascending; unknown_label first, where it occurs
  std::vector<std::array<uint32_t, 2>> cells{};  ///< indices of ids

  explicit SparseConfusion(const std::vector<LabelPair>& pairs) {
    for (const auto& pair : pairs) ids.insert(ids.end(), pair.begin(), pair.end());
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    const auto at = [this](int64_t id) {
      return static_cast<uint32_t>(std::ranges::lower_bound(ids, id) - ids.begin());
    };
    for (const auto& [gold, predicted] : pairs) cells.push_back({at(gold), at(predicted)});
  }

  /// [ids], and the number of all.
  std::vector<LabelCounts> counts(std::span<const int64_t> weights) const {
    std::vector<LabelCounts> label_counts(ids.size());
    for (size_t c = 0; c < cells.size(); ++c) {
      const auto [gold, predicted] = cells[c];
      label_counts[gold].gold += weights[c];
      label_counts[predicted].predicted += weights[c];
      if (gold == predicted) label_counts[gold].right += weights[c];
    }
    return label_counts;
  }
  bool has_unknown() const { return !ids.empty() && ids.front() == unknown_label; }
};

/// Matthews' correlation over all labels; 0 where a side has one label alone, as scikit-learn. Products of counts are
/// taken in double, in which they do not overflow. Source: Gorodkin 2004.
double matthews(std::span<const LabelCounts> counts, double n, double right) {
  double both = 0, gold = 0, predicted = 0;
  for (const auto& label : counts) {
    const auto g = static_cast<double>(label.gold), p = static_cast<double>(label.predicted);
    both += g * p;
    gold += g * g;
    predicted += p * p;
  }
  const double spread = (n * n - gold) * (n * n - predicted);
  return spread == 0 ? 0 : (right * n - both) / std::sqrt(spread);
}

/// The mean recall of the labels that items have, as scikit-learn's.
double balanced_accuracy(std::span<const LabelCounts> counts) {
  double recalls = 0, labels = 0;
  for (const auto& label : counts) {
    if (label.gold == 0) continue;
    recalls += label.recall();
    ++labels;
  }
  return labels == 0 ? 0 : recalls / labels;
}

/// Cohen's kappa; undefined where both sides have the same single label.
double kappa(std::span<const LabelCounts> counts, double n, double right) {
  double expected = 0;
  for (const auto& label : counts) expected += static_cast<double>(label.gold) * static_cast<double>(label.predicted);
  const double by_chance = n - expected / n;  // items that chance would have wrong
  return by_chance == 0 ? no_value : 1 - (n - right) / by_chance;
}

/// Precision, recall and F1 of a binary task: of its second label, as scikit-learn's pos_label = 1.
LabelCounts second_label(const SparseConfusion& confusion, std::span<const LabelCounts> counts) {
  const auto at = std::ranges::find(confusion.ids, 1) - confusion.ids.begin();
  return at == std::ssize(confusion.ids) ? LabelCounts{} : counts[static_cast<size_t>(at)];
}

}  // namespace

TaskScorer class_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size()), labels = scored.labels->size();
  const SparseConfusion confusion(number_cells(label_pairs(scored), scorer));
  const bool is_binary = labels == 2;
  scorer.metrics.push_back({.name = "accuracy", .is_proportion = true, .count = n});
  if (is_binary) add_label_names(scorer, {"precision", "recall", "f1"}, n);
  add_label_names(
      scorer,
      {"precision_macro", "recall_macro", "f1_macro", "f1_macro_seen", "precision_micro", "recall_micro", "f1_micro",
       "precision_weighted", "recall_weighted", "f1_weighted", "balanced_accuracy", "mcc", "kappa"},
      n);
  scorer.metrics.back().undefined = "items and predictions have the same single label";
  scorer.values = [confusion, labels, is_binary](std::span<const int64_t> weights, std::span<double> values) {
    const auto counts = confusion.counts(weights);
    const auto total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    const std::span known(counts.begin() + confusion.has_unknown(), counts.end());
    const LabelSummary s(known, labels);
    auto at = values.begin();
    const auto add = [&](std::initializer_list<double> some) { at = std::ranges::copy(some, at).out; };
    add({ratio_of(s.all.right, total)});
    if (is_binary) {
      const auto second = second_label(confusion, counts);
      add({second.precision(), second.recall(), second.f1()});
    }
    const auto all = static_cast<double>(total), right = static_cast<double>(s.all.right);
    add({s.macro.precision, s.macro.recall, s.macro.f1, s.f1_seen, s.all.precision(), s.all.recall(), s.all.f1(),
         s.weighted.precision, s.weighted.recall, s.weighted.f1, balanced_accuracy(known), matthews(counts, all, right),
         kappa(counts, all, right)});
  };
  return scorer;
}

TaskScorer question_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  auto groups = groups_of(scored);
  using Counts = std::array<int64_t, 4>;  // right, gold, predicted, wrong
  std::vector<Counts> questions(groups.count);
  const auto pairs = label_pairs(scored);
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto& [right, gold, predicted, wrong] = questions[groups.group_of[i]];
    const bool is_right = pairs[i][0] == pairs[i][1] && pairs[i][0] != unknown_label;
    right += is_right && pairs[i][0] == 1;
    gold += pairs[i][0] == 1;
    predicted += pairs[i][1] == 1;
    wrong += !is_right;
  }
  scorer.unit_of = std::move(groups.group_of);
  const auto cells = number_cells(questions, scorer);
  scorer.metrics = {
      {.name = "f1a", .count = static_cast<int64_t>(scored.size())},
      {.name = "exact_match", .is_proportion = true, .count = static_cast<int64_t>(groups.count)},
  };
  scorer.values = [cells](std::span<const int64_t> weights, std::span<double> values) {
    LabelCounts positive;
    int64_t count = 0, exact = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      const auto& [right, gold, predicted, wrong] = cells[c];
      positive.right += weights[c] * right;
      positive.gold += weights[c] * gold;
      positive.predicted += weights[c] * predicted;
      count += weights[c];
      if (wrong == 0) exact += weights[c];
    }
    values[0] = positive.f1();
    values[1] = ratio_of(exact, count);
  };
  return scorer;
}

}  // namespace cloze
