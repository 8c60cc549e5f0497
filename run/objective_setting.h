#pragma once
// What the objectives of a run are told of it.
#include "objectives/limits.h"
#include "run/config.h"

namespace cloze {

/// What surrounds the objectives of this run. It refers to `config`.
ObjectiveSetting setting_of(const RunConfig& config);

}  // namespace cloze
