// Metrics of regression.
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/scores/task_scorer.h"

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
  void ranks(std::span<const int64_t> weights, int64_t total, std::vector<double>& ranked) const {
    int64_t before = 0, tied = 0;
    for (size_t at = 0, begin = 0; at < order.size(); ++at) {
      tied += weights[order[at]];
      if (!ends_tie[at]) continue;
      const auto rank = static_cast<double>(2 * before + tied - total);
      for (; begin <= at; ++begin) ranked[order[begin]] = rank;
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

/// Kendall's tau-b: pairs in the same order less those in the other, over the geometric mean of the pairs that each
/// side orders. Pairs are counted by a tree of sums over the places of predictions (Knight 1966; Fenwick 1994).
class KendallTau {
 public:
  KendallTau(const RankedNumbers& gold, const RankedNumbers& predicted)
      : order_(gold.order), ends_tie_(gold.ends_tie), place_(gold.order.size()) {
    uint32_t place = 1;
    for (size_t at = 0; at < predicted.order.size(); ++at) {
      place_[predicted.order[at]] = place;
      if (predicted.ends_tie[at]) ++place;
    }
    places_ = place;
  }

  double operator()(std::span<const int64_t> weights) const {
    std::vector<int64_t> tree(places_ + 1), ties(places_ + 1);
    int64_t before = 0, agreeing = 0, opposed = 0, tied_gold = 0;
    for (size_t at = 0, begin = 0; at < order_.size(); ++at) {
      if (!ends_tie_[at]) continue;
      int64_t group = 0;
      for (auto k = begin; k <= at; ++k) {
        const auto weight = weights[order_[k]];
        const auto place = place_[order_[k]];
        const auto below = sum(tree, place - 1);
        agreeing += weight * below;
        opposed += weight * (before - sum(tree, place));
        group += weight;
      }
      for (; begin <= at; ++begin) {
        const auto weight = weights[order_[begin]];
        add(tree, place_[order_[begin]], weight);
        ties[place_[order_[begin]]] += weight;
      }
      tied_gold += pairs(group);
      before += group;
    }
    int64_t tied_predictions = 0;
    for (const auto count : ties) tied_predictions += pairs(count);
    const auto ordered =
        static_cast<double>(pairs(before) - tied_gold) * static_cast<double>(pairs(before) - tied_predictions);
    return ordered == 0 ? undefined_value : static_cast<double>(agreeing - opposed) / std::sqrt(ordered);
  }

 private:
  static int64_t pairs(int64_t n) { return n * (n - 1) / 2; }
  static void add(std::vector<int64_t>& tree, size_t place, int64_t weight) {
    for (; place < tree.size(); place += place & -place) tree[place] += weight;
  }
  static int64_t sum(const std::vector<int64_t>& tree, size_t place) {
    int64_t total = 0;
    for (; place > 0; place -= place & -place) total += tree[place];
    return total;
  }

  std::vector<uint32_t> order_;
  std::vector<bool> ends_tie_;
  std::vector<uint32_t> place_;
  uint32_t places_ = 1;
};

struct ValueCells {
  RankedNumbers gold, predicted;
  KendallTau kendall;
  std::vector<double> values{}, squares{}, distances{};  ///< what is right, and how far predictions are from it
  bool has_correlations = true;

  void score(std::span<const int64_t> weights, std::span<double> results) const {
    const auto total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    results[0] = results[1] = results[2] = undefined_value;
    if (has_correlations) {
      results[0] = correlation(gold.centred, predicted.centred, weights);
      std::vector<double> x(weights.size()), y(weights.size());
      gold.ranks(weights, total, x);
      predicted.ranks(weights, total, y);
      results[1] = correlation(x, y, weights);
      results[2] = kendall(weights);
    }
    results[3] = mean(squares, weights, total);
    results[4] = mean(distances, weights, total);
    results[5] = gold.is_constant ? undefined_value : 1 - results[3] / variance(weights, total);
  }

 private:
  static double mean(const std::vector<double>& numbers, std::span<const int64_t> weights, int64_t total) {
    double sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) sum += static_cast<double>(weights[i]) * numbers[i];
    return sum / static_cast<double>(total);
  }
  double variance(std::span<const int64_t> weights, int64_t total) const {
    const double middle = mean(values, weights, total);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i)
      sum += static_cast<double>(weights[i]) * (values[i] - middle) * (values[i] - middle);
    return sum / static_cast<double>(total);
  }
};

}  // namespace

TaskScorer value_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size());
  std::vector<double> gold, predicted, squares, distances;
  for (size_t i = 0; i < scored.size(); ++i) {
    gold.push_back(scored.items[i]->gold.value);
    predicted.push_back(scored.predictions[i]->answer.value);
    distances.push_back(std::abs(gold.back() - predicted.back()));
    squares.push_back(distances.back() * distances.back());
  }
  const RankedNumbers ranked_gold(gold), ranked_predicted(predicted);
  ValueCells cells{.gold = ranked_gold,
                   .predicted = ranked_predicted,
                   .kendall = KendallTau(ranked_gold, ranked_predicted),
                   .values = gold,
                   .squares = std::move(squares),
                   .distances = std::move(distances)};
  cells.has_correlations = !cells.gold.is_constant && !cells.predicted.is_constant;
  const std::string constant = n < 2                    ? "there is one item"
                               : cells.gold.is_constant ? "what is right is the same for all items"
                                                        : "the predictions are the same for all items";
  scorer.cells = scored.size();
  scorer.cell_of.resize(scored.size());
  std::iota(scorer.cell_of.begin(), scorer.cell_of.end(), 0u);
  const std::string beyond = "a squared error is beyond the largest number";
  scorer.metrics = {{.name = "pearson", .undefined = constant, .count = n},
                    {.name = "spearman", .undefined = constant, .count = n},
                    {.name = "kendall", .undefined = constant, .count = n},
                    {.name = "mse", .undefined = beyond, .count = n},
                    {.name = "mae", .undefined = "an error is beyond the largest number", .count = n},
                    {.name = "r2", .undefined = cells.gold.is_constant ? constant : beyond, .count = n}};
  scorer.values = [cells = std::move(cells)](std::span<const int64_t> weights, std::span<double> values) {
    cells.score(weights, values);
  };
  return scorer;
}

}  // namespace cloze
