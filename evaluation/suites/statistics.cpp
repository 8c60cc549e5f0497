#include "evaluation/suites/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cloze {

double average(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t k) {
    return values[i] < values[k] || (std::isnan(values[k]) && !std::isnan(values[i]));  // else NaN would have no order
  });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;  // NaN is not equal to itself
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = (static_cast<double>(begin + end) + 1) / 2;
  }
  return ranks;
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
