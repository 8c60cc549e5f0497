// What probabilities are worth: how far they are from what is right, and whether they tell right from wrong.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/scores/score_order.h"

namespace cloze {

namespace {

/// What one item says of the probabilities that were predicted for it.
struct Confidence {
  double confidence = 0;  ///< of the label that is predicted
  double log_loss = 0;    ///< no larger than that of the least probability that scikit-learn's log_loss knows
  double brier = 0;       ///< Brier 1950: the squared distance to what is right; of two labels half of it
  bool is_right = false;
};

Confidence confidence_of(const TaskItem& item, const TaskPrediction& prediction) {
  constexpr double least = std::numeric_limits<double>::epsilon();
  const auto& p = prediction.probabilities;
  const double sum = std::accumulate(p.begin(), p.end(), 0.0), even = 1 / static_cast<double>(p.size());
  const auto of = [&](int64_t label) {
    if (label == unknown_label) return 0.0;
    return sum > 0 ? p[static_cast<size_t>(label)] / sum : even;
  };
  Confidence it{.confidence = of(prediction.answer.label),
                .log_loss = -std::log(std::clamp(of(item.gold.label), least, 1 - least)),
                .is_right = item.gold.label != unknown_label && item.gold.label == prediction.answer.label};
  for (size_t label = 0; label < p.size(); ++label) {
    const auto id = static_cast<int64_t>(label);
    const double distance = of(id) - (id == item.gold.label);
    it.brier += distance * distance / (p.size() == 2 ? 2 : 1);
  }
  return it;
}

/// Sums over the items of a bin.
struct Bin {
  double count = 0, confidence = 0, right = 0;
  void add(const Confidence& it, double weight) {
    count += weight;
    confidence += weight * it.confidence;
    right += weight * it.is_right;
  }
};

double gap_of(const std::array<Bin, confidence_bins>& all, double total) {
  double sum = 0;
  for (const auto& bin : all) sum += std::abs(bin.right - bin.confidence);
  return sum / total;
}

struct Confidences {
  std::vector<Confidence> items{};
  ScoreOrder order;  ///< by confidence; positive: right

  double mean(std::span<const int64_t> weights, double Confidence::* part, double total) const {
    double sum = 0;
    for (size_t i = 0; i < items.size(); ++i) sum += static_cast<double>(weights[i]) * items[i].*part;
    return sum / total;
  }

  /// Bins of equal width, each open below.
  double equal_width(std::span<const int64_t> weights, double total) const {
    std::array<Bin, confidence_bins> all;
    for (size_t i = 0; i < items.size(); ++i) {
      all[bin_of_confidence(items[i].confidence)].add(items[i], static_cast<double>(weights[i]));
    }
    return gap_of(all, total);
  }

  /// Bins of equally many items, in the order of their confidence: item k of n is in bin 15 k / n.
  double equal_mass(std::span<const int64_t> weights, double total) const {
    std::array<Bin, confidence_bins> all;
    double before = 0;
    for (const auto i : order.items) {
      for (int64_t copy = 0; copy < weights[i]; ++copy)
        all[static_cast<size_t>(before++ * static_cast<double>(confidence_bins) / total)].add(items[i], 1);
    }
    return gap_of(all, total);
  }

  /// The mean error of the k most confident items over all k: the area under errors against coverage. Items of one
  /// confidence count with their mean error. Source: Geifman and El-Yaniv 2017; Geifman et al. 2019, section 2.
  double errors_over_coverage(std::span<const int64_t> weights, double total) const {
    double sum = 0, covered = 0, errors = 0, tied = 0, tied_errors = 0;
    for (size_t at = order.items.size(); at-- > 0;) {
      const auto i = order.items[at];
      tied += static_cast<double>(weights[i]);
      tied_errors += static_cast<double>(weights[i]) * !items[i].is_right;
      if (at > 0 && !order.ends_tie[at - 1]) continue;
      for (double k = 1; k <= tied; ++k) sum += (errors + tied_errors * k / tied) / (covered + k);
      covered += tied;
      errors += tied_errors;
      tied = tied_errors = 0;
    }
    return sum / total;
  }
};

}  // namespace

size_t bin_of_confidence(double confidence) {
  const auto bins = static_cast<double>(confidence_bins);
  return static_cast<size_t>(std::clamp(std::ceil(confidence * bins) - 1, 0.0, bins - 1));
}

TaskScorer calibration_scorer(const ScoredItems& scored) {
  std::vector<Confidence> items;
  std::vector<double> confidences;
  std::vector<bool> is_right;
  for (size_t i = 0; i < scored.size(); ++i) {
    items.push_back(confidence_of(*scored.items[i], *scored.predictions[i]));
    confidences.push_back(items.back().confidence);
    is_right.push_back(items.back().is_right);
  }
  Confidences cells{.items = std::move(items), .order = ScoreOrder(confidences, is_right)};
  TaskScorer scorer = scorer_by_item(scored);
  const auto n = static_cast<int64_t>(scored.size());
  scorer.cost = 4;
  for (const auto* name : {"nll", "brier", "ece", "ece_mass", "aurc"})
    scorer.metrics.push_back({.name = name, .count = n});
  scorer.metrics.push_back({.name = "auc_right", .undefined = "all predictions are right, or none", .count = n});
  scorer.values = [cells = std::move(cells)](std::span<const int64_t> weights, std::span<double> values) {
    const auto total = static_cast<double>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
    std::ranges::copy(
        std::array{cells.mean(weights, &Confidence::log_loss, total), cells.mean(weights, &Confidence::brier, total),
                   cells.equal_width(weights, total), cells.equal_mass(weights, total),
                   cells.errors_over_coverage(weights, total), cells.order.area(weights)},
        values.begin());
  };
  return scorer;
}

}  // namespace cloze
