#pragma once
// Means of suites, and rank correlations.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/report/clusters.h"

namespace cloze {

/// The mean of values; NaN of none.
double average(std::span<const double> values);

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
