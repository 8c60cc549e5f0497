#pragma once
// From a network's numbers for the rows of an item to what is predicted for it, and how wrong that is.
#include <span>
#include <string>
#include <vector>

#include "tasks/scores/span_answer.h"
#include "tasks/item.h"
#include "tasks/rows/task_row.h"
#include "tasks/task_config.h"

namespace cloze {

/// What a network says of a row: of a text a logit for each label, a value or the score of a candidate; of each token
/// the same for tags, and for spans those of the first and of the last token of an answer.
struct RowLogits {
  std::vector<double> values{};  ///< [tokens][columns], or [columns]
  int64_t columns = 0;
};

/// Above which a label is predicted where no other threshold was chosen.
inline constexpr double usual_threshold = 0.5;

/// How predictions are made of logits.
struct PredictionSetting {
  AnyTaskKind kind{};
  int64_t missing_tag = 0;             ///< of a word without a token
  double no_answer_threshold = 0;      ///< spans: a margin above it is no answer
  double threshold = usual_threshold;  ///< above which a label of several, or the second of two, is predicted
  double temperature = 0;              ///< at which probabilities of one label say how often it is right; 0: not known
  bool may_have_no_answer = false;     ///< spans: else every question gets one
  AnswerOptions answers{};
};

/// The setting of a task. `missing_tag`: O, else the first label.
PredictionSetting prediction_setting(const TaskConfig& config, const TaskLabels& labels, bool may_have_no_answer);

/// What is predicted for an item.
struct ItemPrediction {
  TaskPrediction prediction{};
  FoundAnswer answer{};  ///< spans: the best answers, with their places
  /// The loss of what is right: cross entropy, of tags the mean over the words with a tag, of several labels the mean
  /// over the labels; the squared error of a value; NaN without what is right.
  double loss = 0;
  int64_t count = 0;  ///< predictions that it is the mean of: words, labels, else one; 0 without what is right
};

/// Of several windows the logits are averaged. `rows` and `logits`: of the item, in their order.
ItemPrediction predict_item(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                            const PredictionSetting& setting);

/// Spans: takes the best answer, or none where the margin is above the threshold of the setting.
void decide_answer(ItemPrediction& item_prediction, const PredictionSetting& setting);

/// Several labels, or one of two: takes what the probabilities say at the threshold of the setting.
void decide_labels(TaskPrediction& prediction, const PredictionSetting& setting);

/// What is right for an item as text; empty where it is not known.
std::string text_of_gold(const TaskItem& item, AnyTaskKind kind, const TaskLabels& labels);

}  // namespace cloze
