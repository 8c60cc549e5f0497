#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "study/statistics/statistics.h"

namespace cloze {

namespace {

/// Adds, with this sign, what each example moves the value of a run by, times the number of examples: the sum over all
/// of them is 0.
void add_influences(const ExampleLosses& run, double sign, std::vector<double>& influences) {
  const auto examples = influences.size();
  require<DataError>(run.sum.size() == examples && run.count.size() == examples && examples > 0, "runs have losses of ",
                     run.sum.size(), " and of ", examples, " examples; score them on the same held-out text");
  double count = 0;
  for (const double one : run.count) count += one;
  const double value = run.value(), scale = sign * static_cast<double>(examples) / count;
  for (size_t e = 0; e < examples; ++e) influences[e] += scale * (run.sum[e] - value * run.count[e]);
}

/// The same of values on draws of examples; draws on which one of them is undefined are left out.
ExampleError error_on_draws(const std::vector<const ExampleLosses*>& arm,
                            const std::vector<const ExampleLosses*>& baseline) {
  const auto seeds = baseline.size(), draws = baseline.front()->draws.size();
  for (size_t s = 0; s < seeds; ++s)
    require<DataError>(arm[s]->draws.size() == draws && baseline[s]->draws.size() == draws &&
                           arm[s]->drawn_of == baseline[s]->drawn_of,
                       "runs have values on draws of ", arm[s]->drawn_of, " and of ", baseline[s]->drawn_of,
                       " examples; judge them on the same test part");
  std::vector<std::vector<double>> differences(seeds);  // [S][draws]
  std::vector<double> means;
  for (size_t d = 0; d < draws; ++d) {
    double mean = 0;
    for (size_t s = 0; s < seeds; ++s) mean += (arm[s]->draws[d] - baseline[s]->draws[d]) / static_cast<double>(seeds);
    if (!std::isfinite(mean)) continue;
    means.push_back(mean);
    for (size_t s = 0; s < seeds; ++s) differences[s].push_back(arm[s]->draws[d] - baseline[s]->draws[d] - mean);
  }
  const auto variance = [](const std::vector<double>& values) { return std::pow(summarize(values).sd, 2); };
  const auto n = static_cast<double>(seeds);
  double of_interaction = 0;
  for (const auto& of_seed : differences) of_interaction += variance(of_seed) / (n * (n - 1));
  return {.error = std::sqrt(std::max(0.0, variance(means) - of_interaction)), .count = baseline.front()->drawn_of};
}

}  // namespace

ExampleError example_error(const std::vector<const ExampleLosses*>& arm,
                           const std::vector<const ExampleLosses*>& baseline) {
  if (!baseline.front()->draws.empty()) return error_on_draws(arm, baseline);
  const auto examples = baseline.front()->sum.size(), seeds = baseline.size();
  const auto has_none = [](const ExampleLosses* run) { return run->sum.empty(); };
  if (std::ranges::all_of(arm, has_none) && std::ranges::all_of(baseline, has_none)) return {};
  std::vector<double> sum(examples), squares(examples);  // over seeds, of the influences of each example
  for (size_t s = 0; s < seeds; ++s) {
    std::vector<double> influences(examples);
    add_influences(*arm[s], 1, influences);
    add_influences(*baseline[s], -1, influences);
    for (size_t e = 0; e < examples; ++e) {
      sum[e] += influences[e];
      squares[e] += influences[e] * influences[e];
    }
  }
  ExampleError error{.count = static_cast<int64_t>(examples)};
  if (examples < 2) return error;
  const auto n = static_cast<double>(seeds), m = static_cast<double>(examples);
  double of_means = 0, of_interaction = 0;
  for (size_t e = 0; e < examples; ++e) {
    of_means += sum[e] * sum[e] / (n * n);
    of_interaction += squares[e] - sum[e] * sum[e] / n;
  }
  of_means /= m * (m - 1);
  of_interaction /= (n - 1) * (m - 1) * n * m;
  error.error = std::sqrt(std::max(0.0, of_means - of_interaction));
  return error;
}

}  // namespace cloze
