#pragma once
// What the verb `evaluate` prints of held-out losses.
#include <nlohmann/json_fwd.hpp>

#include "cli/command.h"
#include "cli/engine/evaluated_run.h"

namespace cloze {

/// Prints a table of the losses; of several runs, one for each loss, with the differences from the first run, and the
/// bits per byte.
void print_losses(const std::vector<EvaluatedRun>& runs);

/// The same as JSON: a run, or {runs: [...]}, and the evaluation. `measures` are further ones of the first run.
nlohmann::json losses_json(const std::vector<EvaluatedRun>& runs, const EvaluateCommand& command,
                           const nlohmann::json& measures);

}  // namespace cloze
