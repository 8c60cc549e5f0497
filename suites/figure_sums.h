#pragma once
// Shares of right items as quotients of sums, of which statistics over runs are made.
#include <optional>
#include <string>
#include <vector>

#include "suites/suite_result.h"

namespace cloze {

/// A figure of a whole suite as the quotient of two sums.
struct FigureSums {
  std::vector<double> sum{}, count{};  ///< [E]
  double floor = 0;                    ///< what guessing reaches; 0: not known
};

/// The figure of a suite over the clusters of its items, in their order, or over the items of a single cluster; none
/// where it is no share. `micro_` before the metric of a mean over clusters: its mean over items.
std::optional<FigureSums> sums_of(const SuiteResult& result, const std::string& metric);

}  // namespace cloze
