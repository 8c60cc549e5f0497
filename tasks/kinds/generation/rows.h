#pragma once
// Rows of sources, each with the tokens that are to be generated.
#include "tasks/rows/rows.h"

namespace cloze {

/// Adds the row of an item: its source, and of its first reference the tokens that are right. In a decoder the token
/// that ends a text stands between the two, and source and target share the positions of the model.
///
/// Throws ConfigError for a tokenizer without that token, and for a target that leaves a decoder no room for a source.
void add_target_row(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                    RowCounts& counts);

}  // namespace cloze
