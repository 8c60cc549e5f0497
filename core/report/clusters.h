#pragma once
// Examples that come in clusters, such as rows of a document or questions on a text: standard errors of their means.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/report/significance.h"

namespace cloze {

/// The clusters of examples, numbered from 0 in the order in which they come.
struct Clusters {
  std::vector<size_t> of{};  ///< [E]
  size_t count = 0;
  /// Sums over each cluster of numbers of its examples: [count].
  std::vector<double> sums(std::span<const double> values) const;
};

/// Numbers the clusters of examples by what their clusters are called. Without names, and where all examples are of one
/// cluster, so that nothing tells how clusters differ, each example is one.
Clusters cluster_examples(std::span<const uint64_t> names, size_t examples);

/// What the ratio of two sums over clusters would be without each of them, less the ratio: [G].
std::vector<double> without_each(std::span<const double> sums, std::span<const double> counts);

/// How many clusters of one size tell as much as these: (sum n)^2 / sum n^2. Source: Kish 1965, section 8.2; Carter,
/// Schnepel and Steigerwald 2017 ("Asymptotic behavior of a t-test robust to cluster heterogeneity") have it for tests.
double effective_clusters(std::span<const double> counts);

/// Degrees of freedom of an error over clusters: their effective number less 1, but 1 at least.
double freedom_of(std::span<const double> counts);

/// A mean of items that come in clusters, each with its sum and its number of items: the sum of all by the number of
/// all. With the clusters' means as sums, and 1 as numbers, the mean over clusters. Clusters of no item are none.
///
/// The standard error is the jackknife's, which leaves out one cluster at a time, with `freedom_of` of the numbers; of
/// clusters of one size those are the error of cluster-robust regression on a constant and G - 1. Source: Cameron and
/// Miller 2015, "A practitioner's guide to cluster-robust inference", sections II.C and VI; MacKinnon, Nielsen and Webb
/// 2023, "Cluster-robust inference: a guide to empirical practice", section 5, of clusters that differ in size.
struct ClusteredMean {
  double value = 0;
  std::optional<double> error{};     ///< none for a single cluster
  std::optional<Bounds> interval{};  ///< of 95 %; none for a single cluster
};
ClusteredMean clustered_mean(std::span<const double> sums, std::span<const double> counts);

/// The interval of a mean of fractions, in [0, 1]: that over clusters, but nowhere narrower than Wilson's of `count`
/// independent items, since few clusters may be alike by chance; of a single cluster Wilson's. Of other values in
/// [0, 1], whose variance is smaller, it is wide enough.
Bounds fraction_interval(const ClusteredMean& mean, int64_t count);

/// The largest share of all items that may differ where none of so many does, with probability `tail`. Source: Clopper
/// and Pearson 1934.
double unseen_share(int64_t items, double tail);

/// The interval of a difference of shares; where all items differ alike, with what so many leave unseen.
Bounds difference_bounds(const Bounds& bounds, int64_t items);

/// The percentile of a bootstrap of clusters that is as far out as 2.5 % of Student's t: 0.025 for many. Source:
/// Hesterberg 2015, "What teachers should know about the bootstrap", section 5.3 ("expanded percentile intervals").
double tail_of_draws(double clusters);

}  // namespace cloze
