#pragma once
// Search for the settings of a fine-tuning: a run of each, and the best on the valid part.
#include <functional>
#include <string>
#include <vector>

#include "finetune/finetune_recipe.h"
#include "run/config/config.h"
#include "tasks/task.h"

namespace cloze {

/// The overrides with one value for each key of a user's grid, so that the grid of a recipe leaves these keys out.
std::vector<std::string> set_with_grid(std::vector<std::string> set, const std::vector<std::string>& grid);

/// Each of the points with every value of every key of a grid, `optimizer.learning_rate=1e-4,3e-4`; without points
/// those of the grid alone. Throws ConfigError for a key without two values, of the task, or given twice.
std::vector<RecipePoint> grid_points(const std::vector<std::string>& grid, const std::vector<RecipePoint>& points);

/// So many of the points, drawn by a seed, in their order; 0: all.
std::vector<RecipePoint> drawn_points(const std::vector<RecipePoint>& points, int64_t tries, uint64_t seed);

/// Makes a run of each point in `folder`, which is called as the point, and returns the best point: that of the best
/// metric on the valid part, of equal ones the first. A run that is there and finished is not made again, and one that
/// was killed is continued.
///
/// task       that all points are fine-tuned on
/// config_of  the config that a run of a point begins with, without what follows from its rows
/// make       makes or, if `resume`, continues the run of a point in a folder
/// Throws ConfigError for a run that is there with other settings or another task, and where no point has a metric.
RecipePoint best_of_grid(
    const std::vector<RecipePoint>& points, const std::string& folder, const Task& task,
    const std::function<RunConfig(const RecipePoint& point)>& config_of,
    const std::function<void(const RecipePoint& point, const std::string& run, bool resume)>& make);

}  // namespace cloze
