#pragma once
// What the fine-tunings of a study have in common, as its file says it.
#include <string>
#include <vector>

#include "core/error.h"
#include "study/plan/config.h"

namespace cloze {

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

/// The metrics of the tasks of a study, in the order of its files, as far as the files say what their scores are.
/// Throws ConfigError as read_task_config.
std::vector<TaskMetric> task_metrics(const StudyConfig& study, const std::string& file);

/// The keys of their search: `optimizer.learning_rate and train.batch_size`.
std::string keys_of_search(const StudyTasksConfig& tasks);

}  // namespace cloze
