#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "study/statistics.h"

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

}  // namespace

ExampleError example_error(const std::vector<const ExampleLosses*>& arm,
                           const std::vector<const ExampleLosses*>& baseline) {
  const auto examples = baseline.front()->sum.size(), seeds = baseline.size();
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
  ExampleError found{.count = static_cast<int64_t>(examples)};
  if (examples < 2) return found;
  const auto n = static_cast<double>(seeds), m = static_cast<double>(examples);
  double of_means = 0, of_interaction = 0;
  for (size_t e = 0; e < examples; ++e) {
    of_means += sum[e] * sum[e] / (n * n);
    of_interaction += squares[e] - sum[e] * sum[e] / n;
  }
  of_means /= m * (m - 1);
  of_interaction /= (n - 1) * (m - 1) * n * m;
  found.error = std::sqrt(std::max(0.0, of_means - of_interaction));
  return found;
}

}  // namespace cloze
