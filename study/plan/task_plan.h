#pragma once
// The fine-tunings of a study: every trained run on every task with every seed of the fine-tuning, all by one recipe.
#include <string>
#include <vector>

#include "core/error.h"
#include "study/plan/plan.h"
#include "study/plan/probe.h"

namespace cloze {

struct TaskTuning;

/// What all fine-tunings have in common.
struct FinetuningTerms {
  std::vector<std::string> files{};  ///< of the tasks
  int64_t seeds = 1;                 ///< of the fine-tuning, from 1 on
  std::string like{};                ///< the recipe; empty: that of the task file
  std::vector<std::string> set{};    ///< `KEY=VALUE`, of the run or, as `task.KEY=VALUE`, of the task file
  AnyKeys tune{};                    ///< keys whose values a search finds
  bool skip_bad = false;
};

/// The overrides of the task files among those of the terms: `data.train=FILE` of `task.data.train=FILE`.
std::vector<std::string> task_overrides(const FinetuningTerms& terms);

/// The terms of a study. Throws ConfigError for keys that the study itself sets, and for keys of the task file among
/// those of a search.
FinetuningTerms finetuning_terms(const StudyTasksConfig& tasks, const std::string& study_file);

/// A message about overrides of fine-tunings with the places where the study says them, `study.yaml:9:8: tasks.set KEY`
/// for `--set KEY=VALUE`.
std::string with_places(std::string message, const StudyTasksConfig& tasks);

/// Calls `make`, whose ConfigErrors have these places.
template <class Make>
auto placed(const StudyTasksConfig& tasks, const Make& make) try {
  return make();
} catch (const ConfigError& error) {
  throw ConfigError(with_places(error.what(), tasks));
}

/// The plan of the fine-tunings of the runs of a study. Its arms are arms times tasks times seeds of the fine-tuning,
/// `wide, sst2.1`, and its seeds those of the runs. Throws ConfigError for a task file with mistakes, for one whose
/// files are not there, and for two tasks of one name.
///
/// tuning   by the search of a study that has one (study/search/task_tuning.h); null: all have the values of the recipe
Plan task_plan(const Plan& trained, const TaskTuning* tuning = nullptr);

/// The plan of that search: the fine-tunings of all runs on all tasks with each combination of values and each of its
/// seeds, `wide, sst2.100001, learning_rate=3e-4`. Throws as above, and ConfigError for a key without at least two
/// values.
Plan task_tuning_plan(const Plan& trained);

/// The keys of that search: `optimizer.learning_rate and train.batch_size`.
std::string keys_of_search(const StudyTasksConfig& tasks);

/// The same of runs that no study planned, in a folder of their own: arms are runs times tasks, `wiki, sst2`, and seeds
/// those of the fine-tuning. Throws as above, and ConfigError for a run that is named twice.
Plan task_plan(const std::vector<std::string>& runs, const FinetuningTerms& terms, const std::string& folder);

/// The metrics of the tasks of a study, in the order of its files, as far as the files say what their figures are.
/// Throws ConfigError as read_task_config.
std::vector<TaskMetric> task_metrics(const Plan& plan);

/// Gives the metrics of a plan the fine-tunings that are done, unless their settings are not known yet; tasks of which
/// none is named are further secondary ones.
void take_finetunings(Plan& trained, const Plan& tasks);

/// What a metric of a run lacks: `2 of 3 fine-tunings on rte are done`; empty: nothing, or it is not of a task.
std::string missing_finetunings(const Plan& trained, const StudyMetric& metric, const PlannedRun& run);

/// The names of the tasks of a plan of fine-tunings, in their order.
std::vector<std::string> task_names(const Plan& plan);

/// What one fine-tuning of a run of an arm costs, about.
struct FinetuningCost {
  std::string arm{}, task{}, like{};
  double items = 0;  ///< of the training part
  double steps = 0, tokens = 0, flops = 0;
  double seconds = 0;  ///< with its start, its rows, and what it judges
  double disk_bytes = 0;
};

/// The costs of the fine-tunings of a study: of each task, with the network of each arm, a probe of its own on the rows
/// of at most a thousand items a part, whose lengths stand for those of all. Arms with the same network share it. With
/// a search of keys of `train` the mean over its combinations. Opens the tasks, and throws as `open_task` and
/// Prober::probe, and ConfigError for a config that no fine-tuning can have and for a figure that a task lacks.
///
/// trained  the runs that are fine-tuned
std::vector<FinetuningCost> finetuning_costs(const Plan& trained, Prober& prober);

/// How many fine-tunings of a plan each of the costs is of.
double finetunings_each(const Plan& plan, const std::vector<FinetuningCost>& costs);

/// Fine-tunings, recipe and costs by task, for `study plan`.
std::string task_plan_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns);

/// Fine-tunings of a search, their costs, and the tries of each arm, for `study plan`.
std::string task_tuning_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns);

}  // namespace cloze
