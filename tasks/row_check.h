#pragma once
// Whether rows that were saved fit their items.
#include <span>

#include "tasks/item.h"
#include "tasks/task_row.h"

namespace cloze {

/// Whether all numbers of an item and of its rows are places, words, labels and bytes that there are. What reads rows
/// takes them as they stand, and a folder that comes from elsewhere may have any, under a checksum that is right.
///
/// rows    of the item, with their ids
/// labels  how many the task has
bool rows_fit(const TaskItem& item, std::span<const TaskRow> rows, TaskKind kind, int64_t labels);

}  // namespace cloze
