#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/report/clusters.h"
#include "study/statistics/statistics.h"

namespace cloze {

namespace {

void require_same(bool is_same, const char* what, int64_t number, int64_t other, const char* remedy) {
  require<DataError>(is_same, "runs have ", what, " of ", number, " and of ", other, " examples; ", remedy);
}

/// By what a run's value would change without each cluster of its examples: [G].
std::vector<double> changes_of(const ExampleLosses& run, const Clusters& clusters) {
  const auto examples = std::ssize(clusters.of);
  require_same(std::ssize(run.sum) == examples && std::ssize(run.count) == examples && examples > 0, "losses",
               std::ssize(run.sum), examples, "score them on the same held-out text");
  return without_each(clusters.sums(run.sum), clusters.sums(run.count));
}

/// The variance over draws of the means over seeds, without what seeds and draws share.
double variance_on_draws(const std::vector<const ExampleLosses*>& arm,
                         const std::vector<const ExampleLosses*>& baseline) {
  const auto seeds = baseline.size(), draws = baseline.front()->draws.size();
  const auto examples = baseline.front()->drawn_of;
  for (const auto* runs : {&arm, &baseline})
    for (const auto* run : *runs)
      require_same(run->draws.size() == draws && run->drawn_of == examples, "values on draws", run->drawn_of, examples,
                   "judge them on the same test part");
  std::vector<std::vector<double>> differences(seeds);  // [S][draws]
  std::vector<double> means;
  for (size_t d = 0; d < draws; ++d) {
    double mean = 0;
    for (size_t s = 0; s < seeds; ++s) mean += (arm[s]->draws[d] - baseline[s]->draws[d]) / static_cast<double>(seeds);
    if (!std::isfinite(mean)) continue;  // of one run the value is undefined
    means.push_back(mean);
    for (size_t s = 0; s < seeds; ++s) differences[s].push_back(arm[s]->draws[d] - baseline[s]->draws[d] - mean);
  }
  const auto variance = [](const std::vector<double>& values) { return std::pow(summarize(values).sd, 2); };
  const auto n = static_cast<double>(seeds);
  double of_interaction = 0;
  for (const auto& of_seed : differences) of_interaction += variance(of_seed) / (n * (n - 1));
  return variance(means) - of_interaction;
}

/// The jackknife variance over clusters of the means over seeds, without what seeds and clusters share.
double variance_over(const Clusters& clusters, const std::vector<const ExampleLosses*>& arm,
                     const std::vector<const ExampleLosses*>& baseline) {
  std::vector<double> sum(clusters.count), squares(clusters.count);  // over seeds
  for (size_t s = 0; s < baseline.size(); ++s) {
    const auto changes = changes_of(*arm[s], clusters), others = changes_of(*baseline[s], clusters);
    for (size_t g = 0; g < clusters.count; ++g) {
      sum[g] += changes[g] - others[g];
      squares[g] += std::pow(changes[g] - others[g], 2);
    }
  }
  const auto n = static_cast<double>(baseline.size()), m = static_cast<double>(clusters.count);
  double of_means = 0, of_interaction = 0;
  for (size_t g = 0; g < clusters.count; ++g) {
    of_means += sum[g] * sum[g] / (n * n);
    of_interaction += (squares[g] - sum[g] * sum[g] / n) / (n * (n - 1));
  }
  return (m - 1) / m * (of_means - of_interaction);
}

}  // namespace

ExampleError example_error(const std::vector<const ExampleLosses*>& arm,
                           const std::vector<const ExampleLosses*>& baseline) {
  const auto& first = *baseline.front();
  const bool has_draws = !first.draws.empty();
  const auto has_none = [](const ExampleLosses* run) { return run->sum.empty() && run->draws.empty(); };
  if (std::ranges::all_of(arm, has_none) && std::ranges::all_of(baseline, has_none)) return {};
  const auto examples = has_draws ? static_cast<size_t>(first.drawn_of) : first.sum.size();
  const auto clusters = cluster_examples(first.documents, examples);
  const auto counts = clusters.sums(has_draws ? std::vector<double>(examples, 1) : first.count);
  ExampleError error{.freedom = freedom_of(counts),
                     .count = static_cast<int64_t>(examples),
                     .clusters = static_cast<int64_t>(clusters.count),
                     .items = first.items};
  const auto m = static_cast<double>(clusters.count);
  if (m < 2) return error;
  // A bootstrap of m clusters has (m - 1) / m of their variance.
  const double variance =
      has_draws ? m / (m - 1) * variance_on_draws(arm, baseline) : variance_over(clusters, arm, baseline);
  error.error = std::sqrt(std::max(0.0, variance));
  return error;
}

}  // namespace cloze
