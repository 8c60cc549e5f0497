#pragma once
// The search for each arm's own settings of the fine-tunings on each task (`tasks: {tune: ...}`), on the valid part,
// with seeds of its own and as many tries for every arm. Its plan is task_tuning_plan (study/plan/task_plan.h).
#include <optional>

#include "study/search/tuning.h"

namespace cloze {

/// The search of one arm on one task: candidates with the mean of their figures on the valid part, in points where it
/// is no error.
struct TaskSearch : ArmTuning {
  std::string task{};
  TaskMetric figure{};      ///< that the valid part was judged by
  bool is_of_test = false;  ///< the valid part is the test part
  int64_t tries = 0;        ///< fine-tunings that could begin, since their runs had ended
};

/// A finished search.
struct TaskTuning {
  std::vector<TaskSearch> searches{};  ///< by arm, then task
  std::vector<int64_t> seeds{};        ///< of its fine-tunings
  int64_t runs = 0, tokens = 0;        ///< what it cost
  double seconds = 0, flops = 0;
  std::vector<std::string> notes{};  ///< a sentence for each that was changed on its way
  std::string lacks{};  ///< what is missing to choose: a new try where all fine-tunings of an arm have failed
  /// The keys that were found for an arm on a task; none where none of its runs could be fine-tuned.
  std::vector<std::pair<std::string, ConfigNode>> best_keys(const std::string& arm, const std::string& task) const;
};

/// What a search found; none until it is settled. Throws DataError for a damaged summary of a fine-tuning.
std::optional<TaskTuning> read_task_tuning(const Plan& tuning);

/// The values tried of each arm on each task, with the figures of the valid part.
Table task_tuning_table(const TaskTuning& tuning);

/// What was chosen on a task: `on sst2: token: optimizer.learning_rate: 3e-4; word: optimizer.learning_rate: 1e-3`.
std::string chosen_words(const TaskTuning& tuning, const std::string& task);

/// What a reader has to know: what was chosen, what the search cost, what lies at the edge of its values, what ties.
std::vector<std::string> task_tuning_notes(const TaskTuning& tuning);

}  // namespace cloze
