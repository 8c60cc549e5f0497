#pragma once
// What objectives predict, in sentences.
#include <string>

#include "objectives/config.h"

namespace cloze {

/// What an objective predicts, from what, and which tokens it chooses for that.
std::string prediction_rule(const ObjectiveConfig& objective);

}  // namespace cloze
