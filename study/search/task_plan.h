#pragma once
// The fine-tunings of a study: every trained run on every task with every seed of the fine-tuning, all by one recipe.
#include <string>
#include <vector>

#include "study/plan/plan.h"
#include "study/plan/task_terms.h"

namespace cloze {

struct Tuning;

/// The plan of the fine-tunings of the runs of a study. Its arms are arms times tasks times seeds of the fine-tuning,
/// `wide, sst2.1`, and its seeds those of the runs. Throws ConfigError for a task file with mistakes, for one whose
/// files are not there, and for two tasks of one name.
///
/// tuning   by the search of a study that has one (study/search/tuning.h); null: all have the values of the recipe
Plan task_plan(const Plan& trained, const Tuning* tuning = nullptr);

/// The plan of that search: the fine-tunings of all runs on all tasks with each combination of values and each of its
/// seeds, `wide, sst2.100001, learning_rate=3e-4`. Throws as above, and ConfigError for a key without at least two
/// values.
Plan task_tuning_plan(const Plan& trained);

/// The same of runs that no study planned, in a folder of their own: arms are runs times tasks, `wiki, sst2`, and seeds
/// those of the fine-tuning. Throws as above, and ConfigError for a run that is named twice.
Plan task_plan(const std::vector<std::string>& runs, const FinetuningTerms& terms, const std::string& folder);

/// The names of the tasks of a plan of fine-tunings, in their order.
std::vector<std::string> task_names(const Plan& plan);

}  // namespace cloze
