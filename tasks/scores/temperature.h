#pragma once
// The temperature of a classifier: what its logits are divided by, so that its probabilities say how often it is right.
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// Probabilities of one label, as of logits that are divided by `temperature`.
std::vector<double> at_temperature(const std::vector<double>& probabilities, double temperature);

/// The temperature whose probabilities make what is right the likeliest, by Newton's method on its inverse, in which
/// the loss is convex. Between 0.05 and 20: where all predictions are right, none would be the best. 1 without an item
/// whose label is known. Source: Guo et al. 2017, section 4.2 (arXiv 1706.04599).
///
/// predictions  one for each item, with probabilities
double fitted_temperature(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions);

}  // namespace cloze
