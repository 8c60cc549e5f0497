#pragma once
// A task with its rows in the folder of a run, so that training needs neither its files nor its tokenizer again: a
// token store whose documents are the rows, and next to it a file a split with the items and what their rows have
// besides ids.
//
//   FOLDER/manifest.json, train-00000.tokens, ..., tokenizer/   as of prepared text, with the splits train, valid, test
//   FOLDER/train.jsonl, valid.jsonl, test.jsonl                 an item a line: {"id", "text", "gold", "rows": [...]}
#include <span>
#include <string>
#include <vector>

#include "tasks/item.h"
#include "tasks/rows/rows.h"
#include "tasks/rows/task_row.h"
#include "tasks/task.h"

namespace cloze {

/// Items of a split with their rows, those of each item together and in the order of the items.
struct PreparedSplit {
  std::vector<TaskItem> items{};
  std::vector<TaskRow> rows{};
};

/// What was prepared.
struct PreparedTask {
  Task task{};  ///< without the items of its splits
  std::string fingerprint{};
  int64_t longest = 0;                              ///< tokens of the longest row
  uint64_t train_examples = 0, valid_examples = 0;  ///< rows, or items where the rows of an item are one example
  bool may_lack_answers = false;                    ///< spans: a question of the training split has no answer
  std::vector<std::pair<std::string, RowCounts>> counts{};  ///< by split; empty of a task that was opened
};

/// Makes the rows of a task and writes them to `folder`, at once or not at all; what stands there is replaced. Throws
/// DataError for an item of which no row can be made, and with the system's reason.
PreparedTask prepare_task(const Task& task, const Tokenizer& tokenizer, const SpecialTokenTemplate& row_template,
                          const std::string& folder);

/// Whether a folder of tokens is a prepared task, whole or damaged.
bool is_prepared_task(const std::string& folder);

/// What a prepared folder says of its task. Throws DataError for a folder that is none, or damaged.
PreparedTask open_prepared_task(const std::string& folder);

/// A split of a prepared task: `train`, `valid` or `test`. Throws DataError for a damaged one.
PreparedSplit read_prepared_split(const std::string& folder, const std::string& split);

/// Whether two items ask for the same, and the same is right.
bool asks_the_same(const TaskItem& one, const TaskItem& other);

/// Whether a prepared folder has the items of a task. Throws DataError for a damaged one.
bool has_items_of(const std::string& folder, const Task& task);

/// The examples of a split's rows: of `choice` the rows of an item are one.
uint64_t count_examples(AnyTaskKind kind, const std::vector<TaskRow>& rows);

/// What rows lack of a split's texts, in a sentence; empty: nothing. `train: 12 of 900 texts are cut, by 340 tokens`
std::string truncation_note(const std::string& split, const RowCounts& counts);

/// Whether all numbers of an item and of its rows are places, words, labels and bytes that there are. What reads rows
/// takes them as they stand, and a folder that comes from elsewhere may have any, under a checksum that is right.
///
/// rows    of the item, with their ids
/// labels  how many the task has
bool rows_fit(const TaskItem& item, std::span<const TaskRow> rows, AnyTaskKind kind, int64_t labels);

}  // namespace cloze
