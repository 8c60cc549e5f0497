#include "tasks/scores/task_metric.h"

#include "core/contains.h"
#include "core/error.h"
#include "core/text.h"
#include "tasks/scores/floors.h"

namespace cloze {

MetricOptions metric_options(const Task& task) {
  return {.scheme = task.config.data.scheme,
          .squad = task.has_unanswerable ? SquadVersion::v2_0 : SquadVersion::automatic};
}

bool is_error(const std::string& metric) {
  return contains(std::vector<std::string>{"mse", "mae", "loss", "nll", "brier", "ece", "ece_mass", "aurc"}, metric);
}

std::vector<std::string> metric_names(const Task& task) {
  const auto kind = task.config.kind;
  const auto constant = floor_predictions(kind, Floor::constant, task.train.items, task.valid.items, task.labels);
  std::vector<std::string> names;
  for (const auto& one : values_of(kind, task.valid.items, task.labels, constant, metric_options(task)))
    names.push_back(one.metric);
  return names;
}

std::string chosen_metric(const Task& task) {
  const auto names = metric_names(task);
  for (const auto& metric : task.config.metric)
    require<ConfigError>(contains(names, metric), task.file, ": 'metric' is ", metric,
                         ", and the figures of its valid part are ", listed(names), "; name one of them");
  return task.config.metric.empty() ? task.config.kind->usual_metric(names) : task.config.metric.front();
}

}  // namespace cloze
