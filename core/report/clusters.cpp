#include "core/report/clusters.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace cloze {

namespace {

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double t_quantile(double freedom) { return boost::math::quantile(boost::math::students_t(freedom), 0.975); }

}  // namespace

std::vector<double> Clusters::sums(std::span<const double> values) const {
  std::vector<double> totals(count);
  for (size_t e = 0; e < values.size(); ++e) totals[of[e]] += values[e];
  return totals;
}

Clusters cluster_examples(std::span<const uint64_t> names, size_t examples) {
  Clusters clusters{.of = std::vector<size_t>(examples)};
  std::unordered_map<uint64_t, size_t> numbers;
  for (size_t e = 0; e < names.size(); ++e)
    clusters.of[e] = numbers.try_emplace(names[e], numbers.size()).first->second;
  clusters.count = numbers.size();
  if (clusters.count > 1) return clusters;
  std::iota(clusters.of.begin(), clusters.of.end(), size_t{0});
  clusters.count = examples;
  return clusters;
}

std::vector<double> without_each(std::span<const double> sums, std::span<const double> counts) {
  const double sum = sum_of(sums), count = sum_of(counts);
  std::vector<double> changes(sums.size());
  for (size_t g = 0; g < sums.size(); ++g)
    if (counts[g] > 0 && counts[g] < count) changes[g] = (sum - sums[g]) / (count - counts[g]) - sum / count;
  return changes;
}

double effective_clusters(std::span<const double> counts) {
  const double sum = sum_of(counts);
  return sum * sum / std::inner_product(counts.begin(), counts.end(), counts.begin(), 0.0);
}

double freedom_of(std::span<const double> counts) { return std::max(1.0, effective_clusters(counts) - 1); }

ClusteredMean clustered_mean(std::span<const double> sums, std::span<const double> counts) {
  ClusteredMean mean{.value = sum_of(sums) / sum_of(counts)};
  const auto clusters = static_cast<double>(std::ranges::count_if(counts, [](double count) { return count > 0; }));
  if (clusters < 2) return mean;
  const auto changes = without_each(sums, counts);
  const double squares = std::inner_product(changes.begin(), changes.end(), changes.begin(), 0.0);
  mean.error = std::sqrt((clusters - 1) / clusters * squares);
  const double half = t_quantile(freedom_of(counts)) * *mean.error;
  mean.interval = Bounds{mean.value - half, mean.value + half};
  return mean;
}

Bounds fraction_interval(const ClusteredMean& mean, int64_t count) {
  const auto independent = wilson(mean.value * static_cast<double>(count), count);
  const auto bounds = mean.interval.value_or(independent);
  return {std::max(0.0, std::min(bounds.low, independent.low)), std::min(1.0, std::max(bounds.high, independent.high))};
}

double unseen_share(int64_t items, double tail) { return -std::expm1(std::log(tail) / static_cast<double>(items)); }

Bounds difference_bounds(const Bounds& bounds, int64_t items) {
  if (bounds.low != bounds.high) return bounds;
  const double unseen = unseen_share(items, 0.025);
  return {bounds.low - unseen, bounds.high + unseen};
}

double tail_of_draws(double clusters) {
  if (clusters < 2) return 0.025;
  const double far = t_quantile(std::max(1.0, clusters - 1)) * std::sqrt(clusters / (clusters - 1));
  return std::erfc(far / std::sqrt(2.0)) / 2;
}

}  // namespace cloze
