#pragma once
// The figure of a task that chooses the best checkpoint.
#include <string>

#include "tasks/figures/figures.h"
#include "tasks/task.h"

namespace cloze {

/// The options of a task's figures, which have the same names for all parts: strict ones read tags as `data.scheme`
/// says, and answers are scored by SQuAD 2.0's program where a question of any part has none.
MetricOptions metric_options(const Task& task);

/// The figures of the valid part of a task.
std::vector<std::string> figure_names(const Task& task);

/// The first figure that the task names, else the first one of its kind. Throws ConfigError for a name that is none of
/// the figures of its valid part.
std::string chosen_metric(const Task& task);

/// Whether less of a figure is better.
bool is_error(const std::string& metric);

}  // namespace cloze
