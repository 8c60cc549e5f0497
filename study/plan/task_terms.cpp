#include "study/plan/task_terms.h"

#include <filesystem>

#include "core/config/named_config.h"
#include "core/text.h"
#include "finetune/finetune_config.h"
#include "study/plan/plan.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/task_metric.h"
#include "tasks/task.h"

namespace cloze {

std::vector<std::string> task_overrides(const FinetuningTerms& terms) {
  const std::string of_task = "task.";
  std::vector<std::string> overrides;
  for (const auto& one : terms.set)
    if (one.starts_with(of_task)) overrides.push_back(one.substr(of_task.size()));
  return overrides;
}

std::string with_places(std::string message, const StudyTasksConfig& tasks) {
  for (const auto& [key, node] : tasks.set.items)
    each_leaf(key, node, [&](const std::string& path, const ConfigNode& value) {
      replace_all(message, "--set " + shortened(path + "=" + one_line(value)),
                  concat(value.key_where, ": tasks.set ", path));
    });
  for (const auto& [key, values] : tasks.tune.items)
    replace_all(message, "--set " + key, concat(values.key_where, ": tasks.tune ", key));
  return message;
}

FinetuningTerms finetuning_terms(const StudyTasksConfig& tasks, const std::string& study_file) {
  FinetuningTerms terms{.seeds = tasks.seeds, .like = tasks.like};
  for (const auto& file : tasks.files) {
    const auto path = file_of_study(file, study_file);
    const auto shipped = std::filesystem::is_regular_file(path) ? "" : task_of_name(file);
    const auto near = shipped.empty() && !std::filesystem::exists(path) ? did_you_mean_task(file) : "";
    require<ConfigError>(near.empty(), file, ": no such file, and no ready task", near);
    terms.files.push_back(shipped.empty() ? path : shipped);
  }
  const auto refuse_seed = [](const std::string& path, const ConfigNode& value) {
    require<ConfigError>(path != "train.seed", value.key_where,
                         ": 'train.seed' would be replaced by what the study says; `tasks: {seeds: N}` has seeds 1 to "
                         "N");
  };
  for (const auto& [key, node] : tasks.set.items)
    each_leaf(key, node, [&](const std::string& path, const ConfigNode& value) {
      refuse_seed(path, value);
      terms.set.push_back(path + "=" + one_line(value));
    });
  placed(tasks, [&] { refuse_unused(terms.set); });
  for (const auto& [key, values] : tasks.tune.items) {
    refuse_seed(key, values);
    placed(tasks, [&] { refuse_unused({key}); });
    require<ConfigError>(!key.starts_with("task."), values.key_where, ": tasks.tune '", key,
                         "' is a key of the task, whose figures would be others; tune keys of the run, such as "
                         "optimizer.learning_rate");
  }
  terms.tune = tasks.tune;
  return terms;
}

std::vector<TaskMetric> task_metrics(const StudyConfig& study, const std::string& file) {
  const auto terms = finetuning_terms(study.tasks, file);
  std::vector<TaskMetric> metrics;
  for (const auto& task : terms.files) {
    const auto config = read_task_config(task, task_overrides(terms));
    const auto metric = config.metric.empty() ? "" : config.metric.front();
    metrics.push_back({.task = config.task,
                       .name = metric,
                       .is_error = is_error(metric),
                       .floor = name_of_floor(config.kind, Floor::constant)});
  }
  return metrics;
}

std::string keys_of_search(const StudyTasksConfig& tasks) {
  std::vector<std::string> keys;
  for (const auto& [key, values] : tasks.tune.items) keys.push_back(key);
  return listed(keys);
}

}  // namespace cloze
