#pragma once
// Items in the order of a score, of which some are positive: areas under curves.
#include <cstdint>
#include <span>
#include <vector>

#include "tasks/scores/task_scorer.h"

namespace cloze {

struct ScoreOrder {
  std::vector<uint32_t> items{};    ///< ascending by score
  std::vector<bool> ends_tie{};     ///< by place: the next item has another score
  std::vector<bool> is_positive{};  ///< by place

  /// Of each item its score, and whether it is positive.
  ScoreOrder(const std::vector<double>& scores, const std::vector<bool>& positive);

  bool has_both() const;

  /// The probability that a positive item has a higher score than a negative one, ties a half: Mann and Whitney's U.
  /// NaN without one of them.
  double area(std::span<const int64_t> weights) const;

  /// The mean precision over the thresholds that recall rises at, each by its rise, as scikit-learn's. NaN without a
  /// positive item.
  double average_precision(std::span<const int64_t> weights) const;
};

/// The bins of confidence by which a classifier's calibration is told. Source: Guo et al. 2017, section 5.
inline constexpr size_t confidence_bins = 15;
/// Of equal width, each open below.
size_t bin_of_confidence(double confidence);

/// A scorer whose cells are the items, without metrics.
TaskScorer scorer_by_item(const ScoredItems& scored);

}  // namespace cloze
