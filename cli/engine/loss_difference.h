#pragma once
// Differences of held-out losses between runs.
#include "cli/engine/evaluated_run.h"

namespace cloze {

/// The difference of two losses of the same predictions, and its standard error.
struct LossDifference {
  double mean = 0;
  std::optional<double> standard_error;
};

/// The difference between the loss `a` of `one` and the same loss `b` of `first`. None if their predictions differ:
/// those of other tokens, and those of tokens that each run's own generator replaced.
std::optional<LossDifference> difference(const EvaluatedRun& one, const HeldOut& a, const EvaluatedRun& first,
                                         const HeldOut& b);

}  // namespace cloze
