#pragma once
// A network judged by a task: predictions for its items, and their figures.
#include <string>
#include <vector>

#include "objectives/network.h"
#include "tasks/figures.h"
#include "tasks/item_prediction.h"
#include "tasks/prepared_task.h"

namespace cloze {

/// A task, and how predictions of it are made.
struct JudgedTask {
  Task task{};  ///< without items
  Objectives objectives{};
  PredictionSetting setting{};
};

/// The task in a prepared folder for a network with these objectives. Throws DataError for a damaged folder, and for
/// one with other labels than the objective's.
JudgedTask judged_task(const std::string& folder, const Objectives& objectives);

/// Predictions for items, in their order.
///
/// rows    of the items, those of each together
/// Throws Interrupted after a signal to a program that saves.
std::vector<ItemPrediction> predict_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                          const std::vector<TaskRow>& rows);

struct JudgedPart {
  std::vector<ItemPrediction> predictions{};
  TaskFigures figures{};
};

/// Figures of predictions. `resamples`: of their intervals; 0: those of shares alone have some.
TaskFigures figures_of_predictions(const JudgedTask& task, const std::vector<TaskItem>& items,
                                   const std::vector<ItemPrediction>& predictions, int64_t resamples);

/// Predictions and figures of a part.
JudgedPart judge_part(Network& network, const JudgedTask& task, const PreparedPart& part, int64_t resamples);

}  // namespace cloze
