#pragma once
// Resampling of seeds and examples together.
#include "study/statistics.h"

namespace cloze {

/// Means of arms minus baseline when seeds and examples are drawn anew with replacement, all arms alike.
///
/// arms      [A][S], runs of the seeds of the baseline over the same E examples
/// baseline  [S]
/// returns   [A][resamples], in the order of drawing: resample b draws S seeds, then E examples, by below() of
///           Rng(seed).stream("bootstrap", 0, b)
/// Throws DataError for runs of other numbers of examples, and arms of other numbers of runs.
/// Source: Sellam et al. 2022, section 4 (arXiv 2106.16163), procedure 1.
std::vector<std::vector<double>> multibootstrap(const std::vector<std::vector<const ExampleLosses*>>& arms,
                                                const std::vector<const ExampleLosses*>& baseline,
                                                const ComparisonRules& rules);

}  // namespace cloze
