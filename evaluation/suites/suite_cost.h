#pragma once
// What the answers of a run to a suite cost, by those to a sample of its items.
#include "evaluation/suites/suite.h"

namespace cloze {

/// What one evaluation of a whole suite costs.
struct SuiteCost {
  double flops = 0;  ///< of forward passes
  double seconds = 0;
};

/// Numbers of a sample of items, sorted: as many as `count`, evenly spread over their sizes, so that few of them stand
/// for all. `sizes` [N]: of all items.
std::vector<size_t> spread_sample(const std::vector<double>& sizes, size_t count);

/// Times answers to a sample of the items and to a quarter of it in turns, for about `seconds` together; the middle
/// times count. What does not depend on the number of items, such as packing weights, counts once. Throws ConfigError
/// by suite_fault.
SuiteCost suite_cost(const LoadedRun& run, const Suite& suite, const SuiteOptions& options, double seconds);

}  // namespace cloze
