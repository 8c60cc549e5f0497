#pragma once
// What there is to explain of predictions for items.
#include "evaluation/attribution/methods.h"
#include "evaluation/tasks/judged_task.h"

namespace cloze {

/// The id of a baseline. Throws ConfigError for one that the tokenizer lacks.
int64_t baseline_id(BaselineToken baseline, const Tokenizer& tokenizer);

/// A text of the command line as an item: with a tab before the second text, of tagging words between spaces. Throws
/// ConfigError for an empty text, for one text in place of two or the other way round, and for a choice.
TaskItem item_of_text(const std::string& text, const Task& task);

/// Scores with their words, in one order.
struct ExplainedItems {
  std::vector<RowScore> scores{};
  std::vector<Explained> explained{};
};

/// Of each item the score of what is predicted, or of `label`: of a text its logit, of each window one; of a value
/// that; of a choice that of the candidate; of several labels that of each, of none the likeliest; of tags that at each
/// word with one but O; of an answer those of its first and its last token; of a text that is generated, which is the
/// target of its row, those of its tokens.
///
/// label   a label as it is called or written, a candidate by its number from 0; empty: what is predicted
/// Throws ConfigError for a label that the task lacks, DataError for an item without words.
ExplainedItems explained_items(const JudgedTask& task, const std::vector<TaskItem>& items,
                               const std::vector<TaskRow>& rows, const std::vector<ItemPrediction>& predictions,
                               const std::string& label, const Tokenizer& tokenizer);

}  // namespace cloze
