#pragma once
// A task that is open: its config, labels and parts.
#include <string>
#include <vector>

#include "tasks/task_labels.h"
#include "tasks/task_part.h"

namespace cloze {

struct Task {
  TaskConfig config{};
  std::string file{};  ///< of the config
  TaskLabels labels{};
  TaskPart train{}, valid{}, test{};
  bool is_chosen_on_test = false;    ///< `valid: test`: every figure is chosen on the items that it is of
  std::vector<std::string> notes{};  ///< what a reader of its figures should know, a sentence each
};

struct TaskOptions {
  std::vector<std::string> overrides{};       ///< of the config: `data.train=a.tsv`
  std::vector<std::string> brought_labels{};  ///< names in the order of a run or a folder; empty: none are brought
  bool skip_bad = false;                      ///< what is bad is left out, as `PartOptions` says
  bool test_only = false;  ///< nothing is trained: the training part is read for its labels alone, if at all
};

/// Opens a task file. The valid part, where none is given, is a tenth of the training part: the items whose hashes are
/// the smallest, those of one group, and equal ones, together; no seed changes it. Throws ConfigError and DataError
/// with the place of what is wrong; nothing is left out but what the notes say.
Task open_task(const std::string& file, const TaskOptions& options = {});

/// The items of a file for the columns of a task; their labels, if they have any, by the ids of the task's.
TaskPart read_items(const Task& task, const std::string& file, bool needs_labels = false);

/// The same items, `window` at a time as they are read, to `take`, which may move them away. Returns the part without
/// items, with its notes.
TaskPart read_items_in_windows(const Task& task, const std::string& file, size_t window,
                               const std::function<void(std::vector<TaskItem>&)>& take);

/// The part in a sentence: `train: 900 items, negative 400, positive 500`.
std::string counts_of(const TaskPart& part, const TaskLabels& labels);

}  // namespace cloze
