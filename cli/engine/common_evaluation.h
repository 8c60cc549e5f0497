#pragma once
// The held-out evaluation that several runs share.
#include "cli/command.h"
#include "cli/engine/evaluated_run.h"

namespace cloze {

/// The short forms of its objectives.
std::vector<std::string> names_of(const EvaluationConfig& evaluation);

/// The evaluation of all runs: that of the first run, with the changes of the command. An objective by which not all
/// runs are scored is left out and logged. Throws ConfigError if none is left.
EvaluationConfig common_evaluation(const EvaluateCommand& command, const std::vector<EvaluatedRun>& runs);

/// Removes the objectives whose segment pairs need two documents if the text is a single one, and logs them. `text` is
/// its name. Throws DataError if none is left.
void skip_document_pairs(std::vector<EvaluatedRun>& runs, const std::string& text);

}  // namespace cloze
