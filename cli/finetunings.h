#pragma once
// Several fine-tunings of one command: a grid, whose best is taken, and the table that they end in.
#include <functional>
#include <string>
#include <vector>

#include "finetune/finetune_recipe.h"
#include "study/search/task_plan.h"
#include "tasks/task.h"

namespace cloze {

/// Which fine-tunings a table is of.
struct FinetuneTable {
  std::vector<std::string> runs{};  ///< pretrained
  FinetuningTerms terms{};
  std::string out{};  ///< folder of the tables and of the runs
  int64_t jobs = 0;   ///< concurrent fine-tunings; 0: one per core
  bool json = false;  ///< print the tables as one line of JSON
};

/// Fine-tunes every run on every task with every seed, as far as that is not done yet, prints the tables, and writes
/// them to table.md, .csv, .tex and .json. Throws ConfigError as task_plan, for overrides of the seed, and for runs
/// that were made by another plan; Error, with all of this done, where a fine-tuning failed.
void finetune_table(const FinetuneTable& asked, const std::string& program);

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
