#pragma once
// A task that is open: its config, labels and splits.
#include <string>
#include <vector>

#include "tasks/task_split.h"

namespace cloze {

struct Task {
  TaskConfig config{};
  std::string file{};  ///< of the config
  TaskLabels labels{};
  TaskSplit train{}, valid{}, test{};
  bool is_chosen_on_test = false;    ///< `valid: test`: every score is chosen on the items that it is of
  bool has_unanswerable = false;     ///< spans: a question of one of its splits has no answer
  std::vector<std::string> notes{};  ///< what a reader of its scores should know, a sentence each
};

struct TaskOptions {
  std::vector<std::string> overrides{};    ///< of the config: `data.train=a.tsv`
  std::vector<std::string> label_order{};  ///< names in the order of a run or a folder; empty: none are brought
  bool skip_bad = false;                   ///< what is bad is left out, as `PartOptions` says
  uint64_t seed = 1;                       ///< by which items are drawn (data.few, data.fraction)
  bool test_only = false;  ///< nothing is trained: the training split is read for its labels alone, if at all
  /// Nothing is trained: without a file of the training split, labels are those of the test split.
  bool may_lack_train = false;
};

/// Opens a task file. The valid split, where none is given, is a tenth of the training split, a tenth of each label:
/// the items whose hashes are the smallest, those of one group, and equal ones, together, and none of more items than
/// are left of the tenth; no seed changes it. Throws ConfigError and DataError with the place of what is wrong; nothing
/// is left out but what the notes say.
Task open_task(const std::string& file, const TaskOptions& options = {});

/// The items of a file for the columns of a task; their labels, if they have any, by the ids of the task's.
TaskSplit read_items(const Task& task, const std::string& file, bool needs_labels = false);

/// The same items, `window` at a time as they are read, to `take`, which may move them away. `skip_bad`: as of
/// TaskOptions. Returns the split without items, with its notes.
TaskSplit read_items_in_windows(const Task& task, const std::string& file, size_t window,
                                const std::function<void(TaskSplit&)>& take, bool skip_bad = false);

/// The labels of a task in their order, which is never guessed: as `labels` of its file gives them, else as the
/// training split has them, sorted as text (null: nothing but what `labels` gives is asked for). Where names are
/// `brought`, by a run or a folder, their order is that of the labels. Throws DataError for one label only, more than
/// can be labels, and names that are not those brought, with both lists.
TaskLabels order_labels(const TaskConfig& config, const TaskSplit* train, const LabelPool& pool,
                        const std::vector<std::string>& brought);

/// Gives the golds of a split ids instead of numbers of the pool, `unknown_label` to those of labels that are none,
/// which it counts. Notes labels that no item of the training split has, and a first label that may be a name of a
/// column. Throws DataError for an unknown one in the training split.
void number_golds(TaskSplit& split, const TaskConfig& config, const TaskLabels& labels, const LabelPool& pool);

/// Notes the unknown labels of a split, each with its count.
void note_unknown_labels(TaskSplit& split);

/// Throws DataError for a split that cannot be judged, by its kind: most of its labels are unknown, or what is right
/// was held back.
void require_judged(const TaskSplit& split, const TaskSplit& train, const TaskConfig& config, const TaskLabels& labels);

/// Weights of the labels in the loss; empty where the task has none. `balanced`: n / (k * count), so that their mean
/// over the items, or tags, of the training split is 1. Source: scikit-learn, compute_class_weight. Throws ConfigError
/// for another number of weights than labels.
std::vector<double> class_weights_of(const TaskConfig& config, const TaskLabels& labels, const TaskSplit& train);

/// How many items of a split have each label, or words each tag, by id.
std::vector<uint64_t> label_counts(const TaskSplit& split, const TaskLabels& labels);

/// The split in a sentence: `train: 900 items, negative 400, positive 500`.
std::string counts_of(const TaskSplit& split, const TaskLabels& labels);

}  // namespace cloze
