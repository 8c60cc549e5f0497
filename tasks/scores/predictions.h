#pragma once
// Predictions in files, whoever made them.
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/scores/scores.h"

namespace cloze {

/// Predictions for all items, in their order; of spans those that a file lacks have an empty `id`.
struct PredictionFile {
  std::vector<TaskPrediction> predictions{};
  std::vector<size_t> no_answer_order{};  ///< items in the order of the file of no-answer scores
  bool has_no_answer_scores = false;
  /// A sentence each about labels that the task does not have, probabilities that contradict a label or are none,
  /// questions without a prediction and predictions without a question.
  std::vector<std::string> notes{};
};

/// Reads predictions by the form of the file; `.gz` and `.xz` are decompressed.
/// - JSON lines: {"item" | "id", and "label", "labels", "value", "tags", "choice" or "answer"}, with "probabilities" by
///   label (a list or an object) or "scores" by candidate, which are enough by themselves, and "no_answer". An item is
///   its number in its part or its id
/// - JSON: {"ID": "answer"} of SQuAD; {"TASK": {"predictions": [{"id": "TASK_0", "pred": 1}]}} of BabyLM
/// - lines: a label, labels with commas or spaces between, a value or the tags of an item each, the last column of a
///   CSV or of columns that tabs part, below a header that calls it `prediction` or none; without that, tags of columns
///   that tabs part are one a line, with an empty line after each item. Of two columns the first one may be `index`,
///   `item` or `id`, that of the items
/// Labels are names, as they stand in the task's files, or numbers of labels. Others are wrong predictions.
///
/// no_answer  JSON file {"ID": score} of SQuAD's, or empty: none
/// squad      of the scores, which says what questions without a prediction are to them
/// Throws DataError with the place for what is no prediction of the kind, doubled and unknown items, items without one,
/// and a pipe or a device. Answers of SQuAD's form may be missing or more than items, as its programs allow.
PredictionFile read_predictions(const std::string& path, AnyTaskKind kind, const std::vector<TaskItem>& items,
                                const TaskLabels& labels, const std::string& no_answer = "",
                                SquadVersion squad = SquadVersion::automatic);

}  // namespace cloze
