#pragma once
// The percentile bootstrap of metrics.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/random.h"
#include "core/report/significance.h"
#include "tasks/scores/task_scorer.h"

namespace cloze {

/// A draw of the binomial distribution. Source: Hoermann 1993, "The generation of binomial random variates", algorithm
/// BTRS; for an expected count below 10 by inversion.
int64_t binomial(Stream& stream, int64_t n, double p);

/// The clusters of the units of a scorer, which share a text: of items that are clusters of their own, each unit is
/// one. A unit of several items is in the cluster of the first.
struct UnitClusters {
  std::vector<uint64_t> of{};                  ///< [U]
  std::vector<std::vector<uint32_t>> units{};  ///< [G], those of each cluster
  bool are_units() const { return units.size() == of.size(); }
  /// As many units as each cluster has.
  std::vector<double> sizes() const;
};
UnitClusters unit_clusters(const ScoredItems& scored, const TaskScorer& scorer);

/// Counts the cells, of the scorer or of others with the same units, in a draw of as many clusters as there are.
void draw_clusters(Stream& stream, const TaskScorer& scorer, const UnitClusters& clusters,
                   std::vector<int64_t>& weights);

/// Values of metrics on resampled units: draws[r][m] of resample r and metric m, NaN where it is undefined.
struct Resampled {
  std::vector<std::vector<double>> draws{};
  double shrink = 1;  ///< of the distance to `centre`, where fewer units were drawn than there are
  std::vector<double> centre{};
  double clusters = 0;  ///< that are drawn, by their effective number
};

/// Draws clusters of units with replacement, as many as there are, `options.resamples` times. Resample r is a function
/// of the seed and r, whatever the number of threads. Counts of few cells are drawn as such, by the multinomial
/// distribution; more cells, and clusters of several units, by drawing these. Of more cells than `most_drawn` allows,
/// clusters are drawn from so many that are chosen at random, and deviations are multiplied by the square root of their
/// share (Politis, Romano and Wolf 1999, "Subsampling", section 2.2: the rate of convergence is known).
Resampled resample(const ScoredItems& scored, const TaskScorerMaker& make, const TaskScorer& scorer,
                   const MetricOptions& options);
inline constexpr size_t most_drawn = 10'000;

/// The same of two sets of predictions for the same items, first less second, of the same draws.
Resampled resample_difference(const ScoredItems& first, const ScoredItems& second, const TaskScorerMaker& make,
                              const MetricOptions& options);

/// The percentiles of a metric around its value that hold 95 %, tail_of_draws of the clusters and the same from above,
/// linear between neighbours as numpy.quantile; none where no resample has a value.
std::optional<Bounds> percentile_bounds(const Resampled& resampled, size_t metric, double value);

}  // namespace cloze
