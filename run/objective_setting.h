#pragma once
// The setting in which a run has its objectives.
#include "objectives/limits.h"
#include "run/config.h"

namespace cloze {

/// What surrounds the objectives of this run. It refers to `config`.
ObjectiveSetting objective_setting(const RunConfig& config);

}  // namespace cloze
