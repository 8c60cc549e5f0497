#pragma once
// Texts that a network generates for the items of a task.
#include "evaluation/tasks/judged_task.h"

namespace cloze {

/// A text for each item, by the decoding of its task, and the loss of what is right for it. Of a network whose losses
/// are not finite, as of one that diverged, the texts are empty.
///
/// rows    of the items, one each
/// Throws ConfigError for a network that does not generate, Interrupted after a signal to a program that saves.
std::vector<ItemPrediction> generate_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                           const std::vector<TaskRow>& rows);

}  // namespace cloze
