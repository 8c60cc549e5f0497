#pragma once
// What a study declared before its first run: metric, margin, baseline, seeds, budget and arms.
#include <string>
#include <vector>

#include "study/plan/plan.h"

namespace cloze {

// All of these read the study file of the plan: a stage has a study of its own, whose budget is a part.

/// XXH3 of everything in the study file, as it is declared before the first run.
std::string declaration_of(const Plan& plan);

/// Writes declaration.json into the folder of the whole study, unless it exists, or a run of the plan was started.
void declare(const Plan& plan);

/// Whether a run of the plan was started, and declaration.json is not there.
bool lacks_declaration(const Plan& plan);

/// What has changed in the study file since the first run: `metric.better_by was 0.01 before the first run, and is
/// 0.02`; empty where nothing has, or nothing ran. Throws DataError for a damaged declaration.
std::vector<std::string> changes_since_declaration(const Plan& plan);

}  // namespace cloze
