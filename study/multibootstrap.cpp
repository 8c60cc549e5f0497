#include "study/statistics.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/random.h"

namespace cloze {

namespace {

/// Multiplicities of `n` draws with replacement from n elements.
std::vector<int32_t> resample(Stream& stream, size_t n) {
  std::vector<int32_t> times(n, 0);
  for (size_t i = 0; i < n; ++i) ++times[stream.below(n)];
  return times;
}

using Runs = std::vector<const ExampleLosses*>;

/// How often each example is drawn in a few resamples.
struct Resamples {
  std::vector<std::vector<int32_t>> seeds{}, examples{};  ///< [few][S], [few][E]
};

/// Sums of `values` over the examples of one resample, several runs at once: each sum is in the order of the examples,
/// whatever the number of runs.
template <size_t n>
std::array<double, n> weighted_sums(const std::array<const double*, n>& values, const std::vector<int32_t>& times) {
  std::array<double, n> sums{};
  for (size_t e = 0; e < times.size(); ++e) {
    const auto weight = static_cast<double>(times[e]);
    for (size_t k = 0; k < n; ++k) sums[k] += weight * values[k][e];
  }
  return sums;
}

/// [few][columns] sums over the examples of each resample. A few resamples at a time, so that columns stay in the
/// cache.
std::vector<std::vector<double>> weighted_sums(const std::vector<const std::vector<double>*>& columns,
                                               const Resamples& drawn) {
  constexpr size_t together = 8;
  std::vector<std::vector<double>> sums(drawn.examples.size(), std::vector<double>(columns.size()));
  for (size_t first = 0; first < columns.size(); first += together) {
    std::array<const double*, together> values{};
    for (size_t k = 0; k < together; ++k) values[k] = columns[std::min(first + k, columns.size() - 1)]->data();
    for (size_t b = 0; b < drawn.examples.size(); ++b) {
      const auto found = weighted_sums(values, drawn.examples[b]);
      for (size_t k = 0; k < together && first + k < columns.size(); ++k) sums[b][first + k] = found[k];
    }
  }
  return sums;
}

/// The vectors whose weighted sums give the values of runs; counts that runs share, as those of one evaluation, stand
/// once.
struct Columns {
  std::vector<const std::vector<double>*> all{};
  std::vector<size_t> sum_of{}, count_of{};  ///< [runs], indices into `all`
};
Columns columns_of(const Runs& runs) {
  Columns columns;
  std::vector<size_t> counts;
  for (const auto* run : runs) {
    columns.sum_of.push_back(columns.all.size());
    columns.all.push_back(&run->sum);
    auto same = std::find_if(counts.begin(), counts.end(), [&](size_t at) { return *columns.all[at] == run->count; });
    if (same == counts.end()) {
      same = counts.insert(counts.end(), columns.all.size());
      columns.all.push_back(&run->count);
    }
    columns.count_of.push_back(*same);
  }
  return columns;
}

Resamples draw(const ComparisonRules& rules, int64_t first, int64_t end, size_t seeds, size_t examples) {
  const Rng rng(rules.seed);
  Resamples drawn;
  for (int64_t b = first; b < end; ++b) {
    auto stream = rng.stream("bootstrap", 0, static_cast<uint64_t>(b));
    drawn.seeds.push_back(resample(stream, seeds));
    drawn.examples.push_back(resample(stream, examples));
  }
  return drawn;
}

}  // namespace

std::vector<std::vector<double>> multibootstrap(const std::vector<Runs>& arms, const Runs& baseline,
                                                const ComparisonRules& rules) {
  const auto seeds = baseline.size();
  auto runs = baseline;
  for (const auto& arm : arms) {
    require<DataError>(!arm.empty() && arm.size() == seeds, "a bootstrap needs pairs of runs, there are ", arm.size(),
                       " and ", seeds);
    runs.insert(runs.end(), arm.begin(), arm.end());
  }
  const auto examples = baseline.front()->sum.size();
  for (const auto* run : runs)
    require<DataError>(run->sum.size() == examples && run->count.size() == examples && examples > 0,
                       "runs have losses of ", run->sum.size(), " and of ", examples,
                       " examples; score them on the same held-out text");
  const auto columns = columns_of(runs);
  std::vector<std::vector<double>> means(arms.size());
  constexpr int64_t few = 16;
  for (int64_t first = 0; first < rules.resamples; first += few) {
    const auto drawn = draw(rules, first, std::min(first + few, rules.resamples), seeds, examples);
    const auto sums = weighted_sums(columns.all, drawn);
    for (size_t b = 0; b < sums.size(); ++b) {
      const auto value = [&](size_t run) { return sums[b][columns.sum_of[run]] / sums[b][columns.count_of[run]]; };
      for (size_t a = 0; a < arms.size(); ++a) {
        double total = 0;
        for (size_t s = 0; s < seeds; ++s)
          if (const auto times = drawn.seeds[b][s]; times > 0) total += times * (value((a + 1) * seeds + s) - value(s));
        means[a].push_back(total / static_cast<double>(seeds));
      }
    }
  }
  return means;
}

}  // namespace cloze
