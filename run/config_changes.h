#pragma once
// The keys in which a run's config has changed since the run began.
#include <string>
#include <vector>

#include "run/config.h"

namespace cloze {

/// The differences of two configs, except budget, threads, checkpoints and paths: `train.seed: 1 -> 2`.
std::vector<std::string> changed_keys(const RunConfig& before, const RunConfig& now);

}  // namespace cloze
