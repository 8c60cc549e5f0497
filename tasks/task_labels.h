#pragma once
// The labels of a task in their order, which is never guessed.
#include <string>
#include <vector>

#include "tasks/label_pool.h"
#include "tasks/task_part.h"

namespace cloze {

/// The labels of a task: as `labels` of its file gives them, else as the training part has them, sorted as text (null:
/// nothing but what `labels` gives is asked for). Where names are `brought`, by a run or a folder, their order is that
/// of the labels. Throws DataError for one label only, more than can be labels, and names that are not those brought,
/// with both lists.
TaskLabels order_labels(const TaskConfig& config, const TaskPart* train, const LabelPool& pool,
                        const std::vector<std::string>& brought);

/// Gives the golds of a part ids instead of numbers of the pool, `unknown_label` to those of labels that are none.
/// Notes these, each with its count, and labels that no item of the training part has. Throws DataError for one in the
/// training part.
void number_golds(TaskPart& part, const TaskConfig& config, const TaskLabels& labels, const LabelPool& pool);

/// Weights of the labels in the loss; empty where the task has none. `balanced`: n / (k * count), so that their mean
/// over the items, or tags, of the training part is 1. Source: scikit-learn, compute_class_weight. Throws ConfigError
/// for another number of weights than labels.
std::vector<double> class_weights_of(const TaskConfig& config, const TaskLabels& labels, const TaskPart& train);

/// How many items of a part have each label, or words each tag, by id.
std::vector<uint64_t> label_counts(const TaskPart& part, const TaskLabels& labels);

}  // namespace cloze
