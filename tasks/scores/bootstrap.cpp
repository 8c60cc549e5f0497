#include "tasks/scores/bootstrap.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "core/report/clusters.h"
#include "core/worker_threads.h"

namespace cloze {

namespace {

/// ln(k!) by Stirling's series from 10 on, whose next term is below 1e-12; std::lgamma is not safe in threads.
double log_factorial(double k) {
  static constexpr std::array<double, 10> first{0,
                                                0,
                                                0.6931471805599453,
                                                1.791759469228055,
                                                3.1780538303479458,
                                                4.787491742782046,
                                                6.579251212010101,
                                                8.525161361065415,
                                                10.60460290274525,
                                                12.801827480081469};
  if (k < 10) return first[static_cast<size_t>(k)];
  const double x = k + 1, square = x * x;
  const double tail = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / x;
  return (x - 0.5) * std::log(x) - x + 0.9189385332046728 + tail;
}

int64_t small_binomial(Stream& stream, int64_t n, double p) {
  const double odds = p / (1 - p);
  double mass = std::exp(static_cast<double>(n) * std::log1p(-p)), left = stream.uniform();
  int64_t k = 0;
  while (left >= mass && k < n) {
    left -= mass;
    ++k;
    mass *= odds * static_cast<double>(n - k + 1) / static_cast<double>(k);
  }
  return k;
}

int64_t large_binomial(Stream& stream, int64_t count, double p) {
  const auto n = static_cast<double>(count);
  const double spread = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
  const double alpha = (2.83 + 5.1 / b) * spread, mode = std::floor((n + 1) * p);
  const double highest = log_factorial(mode) + log_factorial(n - mode), odds = std::log(p / (1 - p));
  for (;;) {
    const double u = stream.uniform() - 0.5, v = stream.uniform();
    const double room = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / room + b) * u + c);
    if (k < 0 || k > n) continue;
    if (room >= 0.07 && v <= 0.92 - 4.2 / b) return static_cast<int64_t>(k);
    const double height = std::log(v * alpha / (a / (room * room) + b));
    if (height <= highest - log_factorial(k) - log_factorial(n - k) + (k - mode) * odds) return static_cast<int64_t>(k);
  }
}

std::vector<int64_t> counts_of(const TaskScorer& scorer) {
  std::vector<int64_t> counts(scorer.cells);
  for (const auto cell : scorer.cell_of) ++counts[cell];
  return counts;
}

/// Counts of cells in a draw of as many clusters as there are.
struct CellDraws {
  const TaskScorer& scorer;
  const UnitClusters& clusters;
  std::vector<int64_t> counts = counts_of(scorer);

  void draw(Stream& stream, std::vector<int64_t>& weights) const {
    auto left = static_cast<int64_t>(scorer.cell_of.size());
    if (!clusters.are_units() || counts.size() * 8 > scorer.cell_of.size()) {
      draw_clusters(stream, scorer, clusters, weights);
      return;
    }
    auto others = left;  // units of this cell and of those after it
    for (size_t c = 0; c < counts.size(); ++c) {
      const double fraction = others == 0 ? 0 : static_cast<double>(counts[c]) / static_cast<double>(others);
      weights[c] = binomial(stream, left, fraction);
      left -= weights[c];
      others -= counts[c];
    }
  }
};

/// Calls `one(r)` for each resample, on as many threads as there are cores.
void each_resample(int64_t resamples, const std::function<void(int64_t)>& one) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t r; (r = next.fetch_add(1)) < resamples;) one(r);
  };
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const auto helpers = startable_threads(std::min(cores - 1, resamples / 16));
  const WorkerThreads threads(helpers, work, [] {}, threads_remedy);
  work();
}

/// The items of so many clusters, chosen by the seed, in their order.
ScoredItems some_of(const ScoredItems& scored, const TaskScorer& scorer, const UnitClusters& clusters, size_t count,
                    uint64_t seed) {
  const Permutation order(clusters.units.size(), Rng(seed).key("bootstrap units"));
  std::vector<bool> chosen(scorer.cell_of.size());
  for (size_t i = 0; i < count; ++i)
    for (const auto unit : clusters.units[order(i)]) chosen[unit] = true;
  ScoredItems some = scored;
  some.items.clear();
  some.predictions.clear();
  some.cluster_of.clear();
  for (size_t i = 0; i < scored.size(); ++i) {
    if (!chosen[scorer.unit_of.empty() ? i : scorer.unit_of[i]]) continue;
    some.items.push_back(scored.items[i]);
    some.predictions.push_back(scored.predictions[i]);
    some.cluster_of.push_back(scored.cluster_of[i]);
  }
  return some;
}

std::vector<double> values_at(const TaskScorer& scorer) {
  std::vector<double> values(scorer.metrics.size());
  scorer.values(counts_of(scorer), values);
  return values;
}

/// How many clusters are drawn from: all, unless their cells are more than can be weighed so often.
size_t clusters_drawn(const TaskScorer& scorer, const UnitClusters& clusters) {
  const auto most = static_cast<size_t>(std::max(1000.0, static_cast<double>(most_drawn) / scorer.cost));
  const auto units = clusters.of.size(), all = clusters.units.size();
  if (scorer.cells <= most || units <= most) return all;
  constexpr size_t fewest = 100;  // of which a draw of a part still tells what a draw of all would
  return std::min(all, std::max(fewest, all * most / units));
}

double root_of_fraction(size_t part, size_t all) {
  return std::sqrt(static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

// Boost's distribution draws others from the same stream, by which every interval would change.
int64_t binomial(Stream& stream, int64_t n, double p) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomial(stream, n, 1 - p);
  return static_cast<double>(n) * p < 10 ? small_binomial(stream, n, p) : large_binomial(stream, n, p);
}

std::vector<double> UnitClusters::sizes() const {
  std::vector<double> counts;
  for (const auto& of_cluster : units) counts.push_back(static_cast<double>(of_cluster.size()));
  return counts;
}

UnitClusters unit_clusters(const ScoredItems& scored, const TaskScorer& scorer) {
  std::vector<uint64_t> names(scorer.cell_of.size());
  for (size_t i = scored.size(); i-- > 0;) names[scorer.unit_of.empty() ? i : scorer.unit_of[i]] = scored.cluster_of[i];
  const auto clusters = cluster_examples(names, names.size());
  UnitClusters by_cluster{.of = {clusters.of.begin(), clusters.of.end()}};
  by_cluster.units.resize(clusters.count);
  for (size_t unit = 0; unit < names.size(); ++unit)
    by_cluster.units[by_cluster.of[unit]].push_back(static_cast<uint32_t>(unit));
  return by_cluster;
}

void draw_clusters(Stream& stream, const TaskScorer& scorer, const UnitClusters& clusters,
                   std::vector<int64_t>& weights) {
  std::ranges::fill(weights, 0);
  for (size_t i = 0; i < clusters.units.size(); ++i)
    for (const auto unit : clusters.units[stream.below(clusters.units.size())]) ++weights[scorer.cell_of[unit]];
}

Resampled resample(const ScoredItems& scored, const TaskScorerMaker& make, const TaskScorer& scorer,
                   const MetricOptions& options) {
  const auto clusters = unit_clusters(scored, scorer);
  const auto count = clusters_drawn(scorer, clusters);
  if (count < clusters.units.size()) {
    const auto some = some_of(scored, scorer, clusters, count, options.seed);
    const auto part = make(some);
    auto resampled = resample(some, make, part, options);
    resampled.shrink *= root_of_fraction(count, clusters.units.size());
    return resampled;
  }
  Resampled resampled{.draws = std::vector<std::vector<double>>(static_cast<size_t>(options.resamples)),
                      .centre = values_at(scorer),
                      .clusters = effective_clusters(clusters.sizes())};
  const CellDraws draws{scorer, clusters};
  each_resample(options.resamples, [&](int64_t r) {
    auto stream = Rng(options.seed).stream("bootstrap", 0, static_cast<uint64_t>(r));
    std::vector<int64_t> weights(scorer.cells);
    draws.draw(stream, weights);
    auto& values = resampled.draws[static_cast<size_t>(r)];
    values.resize(scorer.metrics.size());
    scorer.values(weights, values);
  });
  return resampled;
}

namespace {

/// Cells of pairs of cells: what two scorers see in one unit.
struct CellPairs {
  std::vector<std::array<uint32_t, 2>> pairs{};
  TaskScorer joint{};  ///< without metrics

  CellPairs(const TaskScorer& first, const TaskScorer& second) {
    joint.cost = 2 * std::max(first.cost, second.cost);
    std::vector<std::array<uint32_t, 2>> all(first.cell_of.size());
    for (size_t u = 0; u < all.size(); ++u) all[u] = {first.cell_of[u], second.cell_of[u]};
    pairs = all;
    std::ranges::sort(pairs);
    pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
    joint.unit_of = first.unit_of;
    joint.cells = pairs.size();
    for (const auto& pair : all)
      joint.cell_of.push_back(static_cast<uint32_t>(std::ranges::lower_bound(pairs, pair) - pairs.begin()));
  }

  std::vector<int64_t> side(const std::vector<int64_t>& weights, size_t which, size_t cells) const {
    std::vector<int64_t> counts(cells);
    for (size_t i = 0; i < pairs.size(); ++i) counts[pairs[i][which]] += weights[i];
    return counts;
  }
};

}  // namespace

Resampled resample_difference(const ScoredItems& first, const ScoredItems& second, const TaskScorerMaker& make,
                              const MetricOptions& options) {
  const auto a = make(first), b = make(second);
  const CellPairs pairs(a, b);
  const auto clusters = unit_clusters(first, a);
  const auto count = clusters_drawn(pairs.joint, clusters);
  if (count < clusters.units.size()) {
    auto resampled = resample_difference(some_of(first, a, clusters, count, options.seed),
                                         some_of(second, a, clusters, count, options.seed), make, options);
    resampled.shrink *= root_of_fraction(count, clusters.units.size());
    return resampled;
  }
  const auto difference = [&](const std::vector<int64_t>& weights) {
    std::vector<double> values(a.metrics.size()), others(a.metrics.size());
    a.values(pairs.side(weights, 0, a.cells), values);
    b.values(pairs.side(weights, 1, b.cells), others);
    for (size_t m = 0; m < values.size(); ++m) values[m] -= others[m];
    return values;
  };
  Resampled resampled{.draws = std::vector<std::vector<double>>(static_cast<size_t>(options.resamples)),
                      .clusters = effective_clusters(clusters.sizes())};
  const CellDraws draws{pairs.joint, clusters};
  resampled.centre = difference(draws.counts);
  each_resample(options.resamples, [&](int64_t r) {
    auto stream = Rng(options.seed).stream("bootstrap", 0, static_cast<uint64_t>(r));
    std::vector<int64_t> weights(pairs.joint.cells);
    draws.draw(stream, weights);
    resampled.draws[static_cast<size_t>(r)] = difference(weights);
  });
  return resampled;
}

std::optional<Bounds> percentile_bounds(const Resampled& resampled, size_t metric, double value) {
  std::vector<double> sorted;
  for (const auto& draw : resampled.draws)
    if (!std::isnan(draw[metric])) sorted.push_back(draw[metric]);
  if (sorted.empty()) return std::nullopt;
  std::ranges::sort(sorted);
  const auto percentile = [&](double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(at), above = std::min(below + 1, sorted.size() - 1);
    const double quantile = sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
    if (resampled.shrink == 1) return quantile;
    return value + (quantile - resampled.centre[metric]) * resampled.shrink;
  };
  const double tail = tail_of_draws(resampled.clusters);
  return Bounds{percentile(tail), percentile(1 - tail)};
}

}  // namespace cloze
