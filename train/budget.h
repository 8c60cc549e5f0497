#pragma once
// What a run has used of its budget, in every currency.
#include <cstdint>
#include <utility>

#include "run/config.h"

namespace cloze {

/// What a run has used up so far.
struct Usage {
  double steps = 0;
  double tokens = 0;
  double predicted_tokens = 0;
  double words = 0;   ///< of the raw text, each time it is seen
  double epochs = 0;  ///< passes over the training text
  double flops = 0;
  double minutes = 0;
};

/// The amount done and the total in the currency that is closest to its limit: {0, 1} before the first step.
std::pair<double, double> nearest_limit(const BudgetConfig& budget, const Usage& usage);

/// The share of the budget that is used, in [0, 1].
double used_share(const BudgetConfig& budget, const Usage& usage);

}  // namespace cloze
