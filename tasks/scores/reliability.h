#pragma once
// How often a classifier is right where it says how sure it is.
#include <string>
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// Accuracy over confidence in bins of equal width as an SVG file, of the probabilities as they are and at the
/// temperature. Source: Guo et al. 2017, figure 1.
std::string reliability_svg(const std::string& title, const std::vector<TaskItem>& items,
                            const std::vector<TaskPrediction>& predictions, double temperature);

}  // namespace cloze
