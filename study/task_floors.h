#pragma once
// What tasks of a report are worth without a network.
#include <vector>

#include "core/table.h"
#include "study/plan.h"
#include "study/task_report.h"

namespace cloze {

/// Adds rows to the rank_table of these arms, with values of the same items: one of what the training part of each task
/// has most, and, where a task is a classification, one of a logistic regression on its words (tasks/floors.h), with
/// their means over tasks. A task without a finished fine-tuning has none. Throws DataError as read_judged_test.
void add_floors(Table& ranks, const Plan& tasks, const std::vector<ArmOnTask>& arms);

}  // namespace cloze
