#pragma once
// Fine-tunings in reports: values by task, their spread, ranks of arms, runs that did not learn.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/table.h"
#include "study/plan/plan.h"
#include "study/statistics/statistics.h"
#include "tasks/scores/floors.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

/// The finished fine-tunings of an arm on a task. Those that were changed on their way alike, or whose networks were,
/// are an arm of their own.
struct ArmOnTask {
  std::string arm{}, task{}, metric{};
  std::string changed{};                      ///< `changed at step 40 with ...`; empty: nothing was
  std::vector<std::vector<double>> values{};  ///< [runs][fine-tunings], in points where it is no error
  std::vector<std::string> runs{};            ///< [runs], their folders
  int64_t items = 0;                          ///< of the test part, of which the metric is; 0: it is an error
  int64_t unlearned = 0;                      ///< that are not shown to be better than the floor on the valid part
  double mean() const;                        ///< over runs of the means over their fine-tunings
  int64_t count() const;                      ///< of fine-tunings
};

/// Standard deviations of a one-way model of random effects: of runs, and of fine-tunings of one run; NaN where there
/// are fewer than two. Source: Searle, Casella and McCulloch 1992, section 3.5 (analysis of variance, 0 where it is
/// negative).
struct SplitSpread {
  double of_runs = 0, of_finetunings = 0;
};
SplitSpread split_spread(const std::vector<std::vector<double>>& values);

/// Of a plan of fine-tunings, arm by arm and task by task. Throws DataError as outcome_of.
std::vector<ArmOnTask> arms_on_tasks(const Plan& tasks);

/// A row an arm, a column a task, with the mean over tasks of the runs that have all of them, where there are several
/// with a 95 % interval that joins Student's over them and what the items leave open (ExampleError), and the average
/// rank among the arms that are not held apart.
Table rank_table(const std::vector<ArmOnTask>& arms);

/// A row for each task and arm: fine-tunings, the parts of their spread, and how many did not learn.
Table finetuning_table(const std::vector<ArmOnTask>& arms);

/// A run against another on a task.
struct RunsOnTask {
  std::string task{}, run{};
  bool is_of_error = false;  ///< less of the metric is better
  Difference difference{};   ///< with p_holm over all
};

/// Of runs that no study planned: each against the first on each task, paired by the seeds of the fine-tuning and on
/// the same items. The intervals of all hold at once; they are of these runs, and not of others that would be
/// pretrained alike. None of one run. Throws DataError as value_of_finetunings.
std::vector<RunsOnTask> differences_of_runs(const Plan& tasks);
Table difference_table(const std::vector<RunsOnTask>& differences, const std::string& first);

/// All of both as numbers: {"arms": [{"arm", "task", "figure", "runs", "values", "unlearned"}], "differences":
/// [{"task", "run", "interval", ...}]}, with what each interval is computed from.
nlohmann::json numbers_of(const std::vector<ArmOnTask>& arms, const std::vector<RunsOnTask>& differences);

/// How difference_table was computed.
std::string difference_words(const Plan& tasks);

/// How all fine-tunings of a plan were made: `Fine-tuned with 3 seeds by the recipe turc-2019, the same for all runs`.
std::string finetuning_words(const Plan& tasks);

/// What a reader has to know of a plan of fine-tunings: recipes, and runs that did not learn or did not end.
std::vector<std::string> task_notes(const Plan& tasks, const std::vector<ArmOnTask>& arms);

/// What the words of a task's training part tell of its test part by a metric; none where its kind has no such floor.
/// Throws DataError as read_prepared_split.
///
/// folder  of the prepared rows
std::optional<NamedFloor> floor_of_words(const std::string& folder, const std::string& metric);

/// The floors of the tasks of a plan of fine-tunings.
class TaskFloors {
 public:
  explicit TaskFloors(const Plan& tasks);
  /// That of a task by a metric; none without a finished fine-tuning, and where its kind has no such floor. Throws
  /// DataError as read_prepared_split.
  std::optional<NamedFloor> find(const std::string& task, const std::string& metric, Floor floor);

 private:
  /// The rows of a finished fine-tuning.
  struct Rows {
    std::string folder{};
    PreparedTask prepared{};
  };
  const std::optional<Rows>& rows_of(const std::string& task);
  std::optional<double> of_words(const Rows& rows, const std::string& metric);
  void keep() const;

  const Plan& tasks_;
  std::string path_;
  std::map<std::string, std::optional<Rows>> rows_{};        ///< by task
  std::map<std::string, std::optional<double>> of_words_{};  ///< by what they are of
};

/// Adds rows to the rank_table of these arms, with values of the same items: one of what the test part of each task has
/// most, and, where a task is a classification, one of a logistic regression on its words (tasks/scores/floors.h),
/// with their means over tasks. A task without a finished fine-tuning has none. Throws DataError as TaskFloors::find.
void add_floors(Table& ranks, TaskFloors& floors, const std::vector<ArmOnTask>& arms);

}  // namespace cloze
