#pragma once
// The score of a task that chooses the best checkpoint.
#include <string>

#include "tasks/scores/scores.h"
#include "tasks/task.h"

namespace cloze {

/// The options of a task's scores, which have the same names for all parts: strict ones read tags as `data.scheme`
/// says, and answers are scored by SQuAD 2.0's program where a question of any part has none.
MetricOptions metric_options(const Task& task);

/// The scores of the valid part of a task.
std::vector<std::string> metric_names(const Task& task);

/// The first score that the task names, else the first one of its kind. Throws ConfigError for a name that is none of
/// the scores of its valid part.
std::string chosen_metric(const Task& task);

/// Whether less of a score is better.
bool is_error(const std::string& metric);

}  // namespace cloze
