#pragma once
// What a task's items become: labels, lengths, what is cut, and rows in the order of training.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/random.h"
#include "tasks/rows/rows.h"
#include "tasks/task.h"

namespace cloze {

/// How the rows of a task are made.
RowOptions row_options(const TaskConfig& config, const TaskLabels& labels);

/// A split of a task, counted.
struct InspectedSplit {
  std::string name{};
  RowCounts rows{};
  std::vector<uint64_t> labels{};            ///< items, or words with a tag, by label
  uint64_t unknown_labels = 0;               ///< of items or words: the training split lacks them
  double least = 0, greatest = 0, mean = 0;  ///< of regression
};

/// Rows that are trained on together, and their item.
struct TaskExample {
  const TaskItem* item = nullptr;
  std::vector<TaskRow> rows{};
};

struct TaskInspection {
  std::vector<InspectedSplit> splits{};  ///< those with items
  std::vector<TaskExample> examples{};   ///< the first ones of training, epoch after epoch
};

/// Makes all rows of a task, and counts them.
///
/// order     generator of the stream `order`
/// examples  number of examples
/// The result points into `task`. Throws DataError for an item of which no row can be made.
TaskInspection inspect_task(const Task& task, const TaskRowMaker& maker, const Rng& order, int64_t examples);

/// `{"examples": [{"item", "window"?, "input_ids", "attention_mask", "token_type_ids"?, "label" | "labels" | "start",
/// "end" | "choices"}], "counts": {PART: ...}, "notes": [...]}`, an example for each window, all of which have numbers
/// where texts are read in windows; `label` is null where the item has none.
nlohmann::ordered_json to_json(const TaskInspection& inspection, const Task& task);

/// The same for people.
std::string inspection_report(const TaskInspection& inspection, const Task& task, const Tokenizer& tokenizer);

}  // namespace cloze
