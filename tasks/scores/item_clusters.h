#pragma once
// Which items of a task are not independent of each other.
#include <cstdint>
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// The cluster of each item, numbered from 0: items that share the longer of their two texts (the context of SQuAD, the
/// passage of BoolQ, the premise of SNLI), of one text that text; where all items name a group and there are fewer
/// groups than texts (the articles of SQuAD), their groups. Items without a text are clusters of their own.
std::vector<uint64_t> clusters_of_items(const std::vector<const TaskItem*>& items);

}  // namespace cloze
