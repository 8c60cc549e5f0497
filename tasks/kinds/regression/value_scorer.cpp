// Metrics of regression.
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/figures/task_scorer.h"

namespace cloze {

namespace {

constexpr double undefined_value = std::numeric_limits<double>::quiet_NaN();

/// Numbers of items, and the items in their order.
struct RankedNumbers {
  std::vector<double> centred{};  ///< without the mean of all, which moves no correlation and keeps its digits
  std::vector<uint32_t> order{};
  std::vector<bool> ends_tie{};  ///< by place
  bool is_constant = true;

  explicit RankedNumbers(const std::vector<double>& numbers) : centred(numbers), order(numbers.size()) {
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t i) { return numbers[i]; });
    for (size_t at = 0; at < order.size(); ++at)
      ends_tie.push_back(at + 1 == order.size() || numbers[order[at]] != numbers[order[at + 1]]);
    is_constant = order.empty() || numbers[order.front()] == numbers[order.back()];
    scale(centred);
    const double mean = std::accumulate(centred.begin(), centred.end(), 0.0) / static_cast<double>(numbers.size());
    for (auto& number : centred) number -= mean;
    scale(centred);
  }

  /// Divides by the power of two below the largest, so that squares are numbers; no correlation changes by a bit.
  static void scale(std::vector<double>& numbers) {
    double most = 0;
    for (const auto number : numbers) most = std::max(most, std::abs(number));
    if (most == 0) return;
    const int exponent = std::ilogb(most);
    for (auto& number : numbers) number = std::scalbn(number, -exponent);
  }

  /// Twice the middle ranks, less that of the middle, when item i occurs weights[i] times.
  void ranks(std::span<const int64_t> weights, int64_t total, std::vector<double>& found) const {
    int64_t before = 0, tied = 0;
    for (size_t at = 0, begin = 0; at < order.size(); ++at) {
      tied += weights[order[at]];
      if (!ends_tie[at]) continue;
      const auto rank = static_cast<double>(2 * before + tied - total);
      for (; begin <= at; ++begin) found[order[begin]] = rank;
      before += tied;
      tied = 0;
    }
  }
};

/// Pearson's correlation of items that occur so many times; undefined where a side is constant.
double correlation(std::span<const double> x, std::span<const double> y, std::span<const int64_t> weights) {
  double n = 0, mean_x = 0, mean_y = 0;
  bool varies_x = false, varies_y = false;
  for (size_t i = 0, first = x.size(); i < x.size(); ++i) {
    if (weights[i] == 0) continue;
    first = std::min(first, i);
    varies_x |= x[i] != x[first];
    varies_y |= y[i] != y[first];
    const auto w = static_cast<double>(weights[i]);
    n += w;
    mean_x += w * x[i];
    mean_y += w * y[i];
  }
  if (!varies_x || !varies_y) return undefined_value;
  mean_x /= n;
  mean_y /= n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto w = static_cast<double>(weights[i]);
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += w * dx * dx;
    yy += w * dy * dy;
    xy += w * dx * dy;
  }
  return std::min(1.0, std::max(-1.0, xy / std::sqrt(xx) / std::sqrt(yy)));
}

struct ValueCells {
  RankedNumbers gold, predicted;
  std::vector<double> squares{};
  bool has_correlations = true;

  void score(std::span<const int64_t> weights, std::span<double> values) const {
    const auto total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    values[0] = values[1] = undefined_value;
    if (has_correlations) {
      values[0] = correlation(gold.centred, predicted.centred, weights);
      std::vector<double> x(weights.size()), y(weights.size());
      gold.ranks(weights, total, x);
      predicted.ranks(weights, total, y);
      values[1] = correlation(x, y, weights);
    }
    double sum = 0;
    for (size_t i = 0; i < squares.size(); ++i) sum += static_cast<double>(weights[i]) * squares[i];
    values[2] = sum / static_cast<double>(total);
  }
};

}  // namespace

TaskScorer value_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size());
  std::vector<double> gold, predicted, squares;
  for (size_t i = 0; i < scored.size(); ++i) {
    gold.push_back(scored.items[i]->gold.value);
    predicted.push_back(scored.predictions[i]->answer.value);
    squares.push_back((gold.back() - predicted.back()) * (gold.back() - predicted.back()));
  }
  ValueCells cells{.gold = RankedNumbers(gold), .predicted = RankedNumbers(predicted), .squares = std::move(squares)};
  cells.has_correlations = !cells.gold.is_constant && !cells.predicted.is_constant;
  const std::string constant = n < 2                    ? "there is one item"
                               : cells.gold.is_constant ? "what is right is the same for all items"
                                                        : "the predictions are the same for all items";
  scorer.cells = scored.size();
  scorer.cell_of.resize(scored.size());
  std::iota(scorer.cell_of.begin(), scorer.cell_of.end(), 0u);
  scorer.metrics = {{.name = "pearson", .undefined = constant, .count = n},
                    {.name = "spearman", .undefined = constant, .count = n},
                    {.name = "mse", .undefined = "a squared error is beyond the largest number", .count = n}};
  scorer.values = [cells = std::move(cells)](std::span<const int64_t> weights, std::span<double> values) {
    cells.score(weights, values);
  };
  return scorer;
}

}  // namespace cloze
