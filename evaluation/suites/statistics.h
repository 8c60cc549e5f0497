#pragma once
// Intervals of fractions and means of suites, and rank correlations.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/report/significance.h"

namespace cloze {

/// The mean of values; NaN of none.
double average(std::span<const double> values);

/// A mean of items that come in clusters, each with its sum and its number of items: the sum of all by the number of
/// all. With the clusters' means as sums, and 1 as numbers, the mean over clusters.
///
/// The interval is that of the cluster-robust standard error, with the correction for few clusters:
/// mean +- t(0.975, G - 1) sqrt(G / (G - 1) sum_g (sum_g - mean n_g)^2) / N
/// Source: Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference", section II.C (for a constant
/// alone) and section VI for t(G - 1); Miller 2024 (arXiv 2411.00640), section 2.2, has it without the correction.
struct ClusteredMean {
  double value = 0;
  std::optional<Bounds> interval{};  ///< none for a single cluster
};
ClusteredMean clustered_mean(std::span<const double> sums, std::span<const double> counts);

/// The interval of a mean of fractions, in [0, 1]: that over clusters, but nowhere narrower than Wilson's of `count`
/// independent items, since few clusters may be alike by chance; of a single cluster Wilson's. Of other values in
/// [0, 1], whose variance is smaller, it is wide enough.
Bounds fraction_interval(const ClusteredMean& mean, int64_t count);

/// Ranks from 1; equal values share the mean of theirs, and NaN comes last, each with a rank of its own.
std::vector<double> ranks(std::span<const double> values);

/// Spearman's correlation of ranks, as scipy.stats.spearmanr; none where one side is constant or has a NaN, or for
/// fewer than two.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

/// The interval of Spearman's correlation of `count` pairs, by Fisher's z; none below four. Source: Bonett and Wright
/// 2000, "Sample size requirements for estimating Pearson, Kendall and Spearman correlations": variance (1 + r^2 / 2) /
/// (n - 3).
std::optional<Bounds> spearman_interval(double correlation, int64_t count);

}  // namespace cloze
