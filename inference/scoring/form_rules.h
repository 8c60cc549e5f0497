#pragma once
// Which forms of a score an objective answers. Without LibTorch.
#include <optional>
#include <vector>

#include "run/config/config.h"
#include "objectives/kind.h"

namespace cloze {

/// The first objective that answers `form`, or null.
const ObjectiveConfig* scored_objective(const Objectives& objectives, const BackboneConfig& model, ScoringForm form);

/// The form that a run is scored by unless another is asked for; none: no head gives probabilities of tokens.
std::optional<ScoringForm> usual_form(const RunConfig& config);

}  // namespace cloze
