#include "tasks/figures/task_metric.h"

#include "core/error.h"
#include "core/text.h"
#include "tasks/figures/floors.h"

namespace cloze {

MetricOptions metric_options(const Task& task) {
  MetricOptions options;
  switch (task.config.data.scheme) {
    case TagScheme::none:
      break;
    case TagScheme::bio:
      options.scheme = EntityScheme::iob2;
      break;
    case TagScheme::bioes:
      options.scheme = EntityScheme::iobes;
  }
  return options;
}

namespace {

/// The figure that chooses where a task names none: the first one, and F1 of tags that mark phrases.
std::string usual_metric(TaskKind kind, const TaskFigures& figures) {
  const bool has_phrases = kind == TaskKind::tagging && figure_of(figures, "f1") != nullptr;
  return has_phrases ? "f1" : figures.figures.at(0).metric;
}

}  // namespace

std::string chosen_metric(const Task& task) {
  const auto kind = task.config.kind;
  const auto constant = floor_predictions(kind, Floor::constant, task.train.items, task.valid.items, task.labels);
  TaskFigures figures;
  figures.figures = values_of(kind, task.valid.items, task.labels, constant, metric_options(task));
  for (const auto& metric : task.config.metric) {
    std::vector<std::string> names;
    for (const auto& figure : figures.figures) names.push_back(figure.metric);
    require<ConfigError>(figure_of(figures, metric) != nullptr, task.file, ": 'metric' is ", metric,
                         ", and the figures of its valid part are ", listed(names), "; name one of them");
  }
  return task.config.metric.empty() ? usual_metric(kind, figures) : task.config.metric.front();
}

}  // namespace cloze
