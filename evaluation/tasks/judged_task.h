#pragma once
// A network judged by a task: predictions for its items, and their scores.
#include <string>
#include <vector>

#include "evaluation/evaluate.h"
#include "finetune/chosen.h"
#include "finetune/run_rows.h"
#include "tasks/scores/scores.h"
#include "tasks/scores/item_prediction.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

/// A task, and how predictions of it are made.
struct JudgedTask {
  Task task{};  ///< without items
  Objectives objectives{};
  PredictionSetting setting{};
  Tokenizer tokenizer{};  ///< of generated texts
};

/// The task in a prepared folder for a network with these objectives. `chosen`: of the checkpoint. Throws DataError for
/// a damaged folder, and for one with other labels than the objective's.
JudgedTask judged_task(const std::string& folder, const Objectives& objectives, const ChosenOnValid& chosen = {});

/// The task of a file for a network that came with its head, and has been trained on it elsewhere: `file` says what its
/// items are, and the head which labels there are, in its order; `labels` of the file may say how files write them.
/// Without the tokenizer.
/// Throws ConfigError for a network without the head of a task or with one of another kind, DataError for other labels.
JudgedTask task_of_head(const std::string& file, const Objectives& objectives);

/// Predictions for items, in their order.
///
/// rows         of the items, those of each together
/// dropout_key  with dropout drawn by this key
/// Throws Interrupted after a signal to a program that saves.
std::vector<ItemPrediction> predict_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                          const std::vector<TaskRow>& rows, std::optional<uint64_t> dropout_key = {});

struct JudgedSplit {
  std::vector<ItemPrediction> predictions{};
  TaskScores scores{};  ///< none, where the predictions are not finite
};

/// Whether scores can be made of predictions, as they can of those of a network that did not diverge.
bool are_finite(const std::vector<ItemPrediction>& predictions);

/// What is predicted, without the losses.
std::vector<TaskPrediction> plain_predictions(const std::vector<ItemPrediction>& predictions);

/// Figures of predictions. `resamples`: of their intervals; 0: those of shares alone have some.
TaskScores scores_of_predictions(const JudgedTask& task, const std::vector<TaskItem>& items,
                                 const std::vector<ItemPrediction>& predictions, int64_t resamples);

/// Chooses by predictions what is left to choose after training, sets it in the setting of the task and decides the
/// predictions anew: of spans whose questions may have no answer the threshold, for exact matches or F1 as `metric` is;
/// of one label the temperature, which decides nothing; the threshold of a label where the task asks for it.
void choose_setting(JudgedTask& task, const std::vector<TaskItem>& items, const std::string& metric,
                    std::vector<ItemPrediction>& predictions);

/// Predictions and scores of a split.
JudgedSplit judge_split(Network& network, const JudgedTask& task, const PreparedSplit& split, int64_t resamples);

/// The same by each probe of a network, in the order of its layers, in one pass over the rows. `kept`: as run_probes.
std::vector<JudgedSplit> judge_probes(Network& network, const JudgedTask& task, const PreparedSplit& split,
                                      int64_t resamples, const RowStates* kept = nullptr);

/// Adds those of the constant prediction to each score of predictions for these items.
void add_constant_floor(const JudgedTask& task, const std::vector<TaskItem>& items, TaskScores& scores);

/// The loss of guessing evenly on a split: one label or candidate as much as another, one token of the longest row, and
/// of a value the one that a head begins with.
double loss_of_guessing(const JudgedTask& task, const PreparedSplit& split);

/// The loss of a judged split, whose sequences are its items: the mean over their predictions, without the class
/// weights and the label smoothing of training, on the scale of training. Its accuracy is the score of that name, if
/// there is one.
///
/// items  of the split
/// name   of the loss, as the objective's short form
HeldOut held_out_of(const JudgedTask& task, const std::vector<TaskItem>& items, const JudgedSplit& judged,
                    const std::string& name);

}  // namespace cloze
