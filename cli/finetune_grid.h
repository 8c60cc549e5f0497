#pragma once
// A recipe that is a grid: a run for every setting, of which the best on the valid part is taken.
#include <functional>
#include <string>
#include <vector>

#include "run/finetune_recipe.h"
#include "tasks/task.h"

namespace cloze {

/// Makes a run of each point in `folder`, which is called as the point, and returns the best point: that of the best
/// figure on the valid part, of equal ones the first. A run that is there and finished is not made again, and one that
/// was killed is continued.
///
/// task       that all points are fine-tuned on
/// config_of  the config that a run of a point begins with, without what follows from its rows
/// make       makes or, if `resume`, continues the run of a point in a folder
/// Throws ConfigError for a run that is there with other settings or another task, and where no point has a figure.
RecipePoint best_of_grid(
    const std::vector<RecipePoint>& points, const std::string& folder, const Task& task,
    const std::function<RunConfig(const RecipePoint& point)>& config_of,
    const std::function<void(const RecipePoint& point, const std::string& run, bool resume)>& make);

}  // namespace cloze
