#include "train/budget.h"

#include <algorithm>

namespace cloze {

std::pair<double, double> nearest_limit(const BudgetConfig& budget, const Usage& usage) {
  std::pair<double, double> nearest{0, 1};
  const auto consider = [&](double done, double total) {
    if (total > 0 && done / total >= nearest.first / nearest.second) nearest = {done, total};
  };
  consider(usage.minutes, budget.minutes);
  consider(usage.flops, budget.flops);
  consider(usage.epochs, budget.epochs);
  consider(usage.words, static_cast<double>(budget.words));
  consider(usage.predicted_tokens, static_cast<double>(budget.predicted_tokens));
  consider(usage.tokens, static_cast<double>(budget.tokens));
  consider(usage.steps, static_cast<double>(budget.steps));
  return nearest;
}

double used_share(const BudgetConfig& budget, const Usage& usage) {
  const auto [done, total] = nearest_limit(budget, usage);
  return std::min(1.0, done / total);
}

}  // namespace cloze
