#include "evaluation/suites/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace cloze {

double average(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ClusteredMean clustered_mean(std::span<const double> sums, std::span<const double> counts) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  ClusteredMean mean{.value = std::accumulate(sums.begin(), sums.end(), 0.0) / all};
  if (sums.size() < 2) return mean;
  const auto clusters = static_cast<double>(sums.size());
  double squares = 0;
  for (size_t g = 0; g < sums.size(); ++g) {
    const double residual = sums[g] - mean.value * counts[g];
    squares += residual * residual;
  }
  const double error = std::sqrt(clusters / (clusters - 1) * squares) / all;
  const double t = boost::math::quantile(boost::math::students_t(clusters - 1), 0.975);
  mean.interval = {mean.value - t * error, mean.value + t * error};
  return mean;
}

Bounds fraction_interval(const ClusteredMean& mean, int64_t count) {
  const auto independent = wilson(mean.value * static_cast<double>(count), count);
  const auto bounds = mean.interval.value_or(independent);
  return {std::max(0.0, std::min(bounds.low, independent.low)), std::min(1.0, std::max(bounds.high, independent.high))};
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t k) {
    return values[i] < values[k] || (std::isnan(values[k]) && !std::isnan(values[i]));  // else NaN would have no order
  });
  std::vector<double> found(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;  // NaN is not equal to itself
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) found[order[i]] = (static_cast<double>(begin + end) + 1) / 2;
  }
  return found;
}

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (a.size() < 2 || std::ranges::any_of(a, is_nan) || std::ranges::any_of(b, is_nan)) return std::nullopt;
  const auto x = ranks(a), y = ranks(b);
  const double mean_x = average(x), mean_y = average(y);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
}

std::optional<Bounds> spearman_interval(double correlation, int64_t count) {
  if (count < 4) return std::nullopt;
  if (std::abs(correlation) == 1) return Bounds{correlation, correlation};
  const double error = std::sqrt((1 + correlation * correlation / 2) / static_cast<double>(count - 3));
  const double z = std::atanh(correlation);
  return Bounds{std::tanh(z - normal_quantile * error), std::tanh(z + normal_quantile * error)};
}

}  // namespace cloze
