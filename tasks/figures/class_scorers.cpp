// Metrics of labels: all are functions of the confusion.
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "tasks/figures/task_scorer.h"

namespace cloze {

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

int64_t gold_label(const TaskItem& item) { return std::get<GoldLabel>(item.gold).id; }

std::vector<LabelPair> label_pairs(const ScoredItems& scored) {
  std::vector<LabelPair> pairs;
  pairs.reserve(scored.size());
  for (size_t i = 0; i < scored.size(); ++i)
    pairs.push_back({gold_label(*scored.items[i]), scored.predictions[i]->label});
  return pairs;
}

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

/// Cohen's kappa; undefined where both sides have the same single label.
double kappa(std::span<const LabelCounts> counts, double n, double right) {
  double expected = 0;
  for (const auto& label : counts) expected += static_cast<double>(label.gold) * static_cast<double>(label.predicted);
  const double by_chance = n - expected / n;  // items that chance would have wrong
  return by_chance == 0 ? no_value : 1 - (n - right) / by_chance;
}

void add_label_names(TaskScorer& scorer, std::initializer_list<const char*> names, int64_t count) {
  for (const auto* name : names) scorer.metrics.push_back({.name = name, .count = count});
}

/// Precision, recall and F1 of a binary task: of its second label, as scikit-learn's pos_label = 1.
LabelCounts second_label(const SparseConfusion& confusion, std::span<const LabelCounts> counts) {
  const auto at = std::ranges::find(confusion.ids, 1) - confusion.ids.begin();
  return at == std::ssize(confusion.ids) ? LabelCounts{} : counts[static_cast<size_t>(at)];
}

/// Labels of an item, and those predicted for it, ascending.
using LabelSets = std::array<std::vector<int64_t>, 2>;

std::vector<LabelSets> label_sets(const ScoredItems& scored) {
  std::vector<LabelSets> sets;
  for (size_t i = 0; i < scored.size(); ++i)
    sets.push_back({std::get<GoldLabels>(scored.items[i]->gold).ids, scored.predictions[i]->labels});
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

LabelFigures figures_of(const std::string& label, const LabelCounts& counts) {
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

TaskScorer class_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size()), labels = scored.labels->size();
  const SparseConfusion confusion(number_cells(label_pairs(scored), scorer));
  const bool is_binary = labels == 2;
  scorer.metrics.push_back({.name = "accuracy", .is_proportion = true, .count = n});
  if (is_binary) add_label_names(scorer, {"precision", "recall", "f1"}, n);
  add_label_names(scorer,
                  {"precision_macro", "recall_macro", "f1_macro", "f1_macro_seen", "precision_micro", "recall_micro",
                   "f1_micro", "precision_weighted", "recall_weighted", "f1_weighted", "mcc", "kappa"},
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
         s.weighted.precision, s.weighted.recall, s.weighted.f1, matthews(counts, all, right),
         kappa(counts, all, right)});
  };
  return scorer;
}

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

void add_label_tables(const std::vector<LabelPair>& pairs, const TaskLabels& task, TaskFigures& figures) {
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
  for (size_t id = 0; id + 1 < slots; ++id) figures.per_label.push_back(figures_of(task.names[id], counts[id]));
  if (labels > most_confused) return;
  auto& confusion = figures.confusion.emplace(Confusion{.labels = task.names});
  if (has_unknown) confusion.labels.emplace_back("(unknown)");
  confusion.counts.assign(confusion.labels.size(), std::vector<int64_t>(confusion.labels.size()));
  for (const auto& [gold, predicted] : pairs) ++confusion.counts[slot(gold)][slot(predicted)];
}

void add_class_tables(const ScoredItems& scored, TaskFigures& figures) {
  add_label_tables(label_pairs(scored), *scored.labels, figures);
}

void add_multilabel_table(const ScoredItems& scored, TaskFigures& figures) {
  std::vector<LabelCounts> counts(static_cast<size_t>(scored.labels->size()));
  for (const auto& sets : label_sets(scored)) count_sets(sets, 1, counts);
  for (size_t id = 0; id < counts.size(); ++id)
    figures.per_label.push_back(figures_of(scored.labels->names[id], counts[id]));
}

}  // namespace cloze
