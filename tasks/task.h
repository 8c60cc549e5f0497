#pragma once
// A task that is open: its config, labels and parts.
#include <string>
#include <vector>

#include "tasks/task_part.h"

namespace cloze {

struct Task {
  TaskConfig config{};
  std::string file{};  ///< of the config
  TaskLabels labels{};
  TaskPart train{}, valid{}, test{};
  bool is_chosen_on_test = false;    ///< `valid: test`: every figure is chosen on the items that it is of
  bool has_unanswerable = false;     ///< spans: a question of one of its parts has no answer
  std::vector<std::string> notes{};  ///< what a reader of its figures should know, a sentence each
};

struct TaskOptions {
  std::vector<std::string> overrides{};       ///< of the config: `data.train=a.tsv`
  std::vector<std::string> brought_labels{};  ///< names in the order of a run or a folder; empty: none are brought
  bool skip_bad = false;                      ///< what is bad is left out, as `PartOptions` says
  bool test_only = false;  ///< nothing is trained: the training part is read for its labels alone, if at all
  /// Nothing is trained: without a file of the training part, labels are those of the test part.
  bool may_lack_train = false;
};

/// Opens a task file. The valid part, where none is given, is a tenth of the training part, a tenth of each label: the
/// items whose hashes are the smallest, those of one group, and equal ones, together, and none of more items than are
/// left of the tenth; no seed changes it. Throws ConfigError and DataError
/// with the place of what is wrong; nothing is left out but what the notes say.
Task open_task(const std::string& file, const TaskOptions& options = {});

/// The items of a file for the columns of a task; their labels, if they have any, by the ids of the task's.
TaskPart read_items(const Task& task, const std::string& file, bool needs_labels = false);

/// The same items, `window` at a time as they are read, to `take`, which may move them away. `skip_bad`: as of
/// TaskOptions. Returns the part without items, with its notes.
TaskPart read_items_in_windows(const Task& task, const std::string& file, size_t window,
                               const std::function<void(TaskPart&)>& take, bool skip_bad = false);

/// The labels of a task in their order, which is never guessed: as `labels` of its file gives them, else as the
/// training part has them, sorted as text (null: nothing but what `labels` gives is asked for). Where names are
/// `brought`, by a run or a folder, their order is that of the labels. Throws DataError for one label only, more than
/// can be labels, and names that are not those brought, with both lists.
TaskLabels order_labels(const TaskConfig& config, const TaskPart* train, const LabelPool& pool,
                        const std::vector<std::string>& brought);

/// Gives the golds of a part ids instead of numbers of the pool, `unknown_label` to those of labels that are none,
/// which it counts. Notes labels that no item of the training part has, and a first label that may be a name of a
/// column. Throws DataError for an unknown one in the training part.
void number_golds(TaskPart& part, const TaskConfig& config, const TaskLabels& labels, const LabelPool& pool);

/// Notes the unknown labels of a part, each with its count.
void note_unknown_labels(TaskPart& part);

/// Throws DataError for a part that cannot be judged, by its kind: most of its labels are unknown, or what is right was
/// held back.
void require_judged(const TaskPart& part, const TaskPart& train, const TaskConfig& config, const TaskLabels& labels);

/// Weights of the labels in the loss; empty where the task has none. `balanced`: n / (k * count), so that their mean
/// over the items, or tags, of the training part is 1. Source: scikit-learn, compute_class_weight. Throws ConfigError
/// for another number of weights than labels.
std::vector<double> class_weights_of(const TaskConfig& config, const TaskLabels& labels, const TaskPart& train);

/// How many items of a part have each label, or words each tag, by id.
std::vector<uint64_t> label_counts(const TaskPart& part, const TaskLabels& labels);

/// The part in a sentence: `train: 900 items, negative 400, positive 500`.
std::string counts_of(const TaskPart& part, const TaskLabels& labels);

}  // namespace cloze
