#pragma once
// What fine-tuned runs found on the test parts of their tasks.
#include <limits>
#include <string>
#include <vector>

#include "study/measures/metric.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

/// The value of a metric in points of a hundred; that of an error as it is.
double points_of(double value, const std::string& metric);

/// What the summary of a finished fine-tuned run says. Values are in points where they are no errors; NaN: undefined.
struct TaskOutcome {
  std::string task{};
  std::string metric{};            ///< that which chose its best step
  double value = 0, valid = 0;     ///< of the test part; of the best step on the valid part
  int64_t items = 0;               ///< what the former is of; 0: not known
  bool learned = true;             ///< better than its floor on the valid part
  bool is_chosen_on_test = false;  ///< `valid: test`: the valid part has the items of the test part
};

/// The test part of a fine-tuned run, and what the run predicted for it.
struct JudgedTest {
  PreparedTask prepared{};
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
};

/// Throws DataError for files that are missing or damaged, and for rows or predictions of another run.
JudgedTest read_judged_test(const std::string& folder);

/// Throws DataError for a run that has not judged its test part, or whose summary.json is damaged.
TaskOutcome outcome_of(const std::string& folder);

/// The mean over fine-tuned runs of a metric on their test part, item by item where it is a mean of items, else on
/// bootstrap draws of items; NaN where one of them has none. `figure` empty: that which chose. Throws DataError for
/// runs that were judged on different items, and for files that are missing or damaged.
MetricValue value_of_finetunings(const std::vector<std::string>& folders, const std::string& metric);

}  // namespace cloze
