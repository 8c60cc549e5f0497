#include "study/task_floors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/contains.h"
#include "core/text.h"
#include "run/run_files.h"
#include "study/runs.h"
#include "tasks/floors.h"
#include "tasks/prepared_task.h"
#include "tasks/task_metric.h"

namespace cloze {

namespace {

/// A task of the table with the rows of one of its finished fine-tunings.
struct TaskWithRows {
  std::string figure{}, rows{};
  PreparedTask prepared{};
};

/// The tasks of a rank_table in its order; of those without a finished fine-tuning nothing is known.
std::vector<std::optional<TaskWithRows>> tasks_with_rows(const Plan& tasks, const std::vector<ArmOnTask>& arms) {
  std::vector<std::string> names;
  for (const auto& arm : arms)
    if (!contains(names, arm.task)) names.push_back(arm.task);
  std::vector<std::optional<TaskWithRows>> all;
  for (const auto& name : names) {
    auto& found = all.emplace_back();
    const auto finished =
        std::ranges::find_if(arms, [&](const ArmOnTask& arm) { return arm.task == name && !arm.figure.empty(); });
    if (finished == arms.end()) continue;
    const auto run = std::ranges::find_if(tasks.runs, [&](const PlannedRun& one) {
      return one.finetuning.task == name && status_of(tasks, one).state == RunState::done;
    });
    const auto rows = run_path(tasks, *run) + "/" + task_folder;
    found = TaskWithRows{.figure = finished->figure, .rows = rows, .prepared = open_prepared_task(rows)};
  }
  return all;
}

/// What a floor predicts for the test part; none where the task has no such floor.
std::optional<std::vector<TaskPrediction>> predictions_of(const TaskWithRows& of, Floor floor,
                                                          const std::vector<TaskItem>& test) {
  const auto& task = of.prepared.task;
  if (floor == Floor::constant) return constant_predictions(task.config.kind, of.prepared.constant, test);
  if (task.config.kind != TaskKind::classification) return {};
  const auto train = read_prepared_part(of.rows, "train").items;
  std::set<int64_t> labels;
  for (const auto& item : train)
    if (const auto* gold = std::get_if<GoldLabel>(&item.gold); gold && gold->id != unknown_label)
      labels.insert(gold->id);
  if (labels.size() < 2) return {};  // nothing to tell apart
  return floor_predictions(task.config.kind, floor, train, test, task.labels);
}

/// The value of a floor on the test part, in points where it is no error.
std::optional<double> value_of_floor(const TaskWithRows& of, Floor floor) {
  const auto& task = of.prepared.task;
  const auto test = read_prepared_part(of.rows, "test").items;
  const auto predictions = predictions_of(of, floor, test);
  if (!predictions) return {};
  for (const auto& one : values_of(task.config.kind, test, task.labels, *predictions, metric_options(task)))
    if (one.metric == of.figure && one.value) return is_error(of.figure) ? *one.value : 100 * *one.value;
  return {};
}

}  // namespace

void add_floors(Table& ranks, const Plan& tasks, const std::vector<ArmOnTask>& arms) {
  const auto all = tasks_with_rows(tasks, arms);
  for (const auto floor : {Floor::constant, Floor::words}) {
    std::vector<std::string> names, cells;
    double sum = 0, count = 0;
    bool has_all = true;
    for (const auto& task : all) {
      const auto value = task ? value_of_floor(*task, floor) : std::nullopt;
      cells.push_back(value ? fixed(*value, is_error(task->figure) ? 4 : 2) : "");
      if (value) {
        const auto name = name_of_floor(task->prepared.task.config.kind, floor);
        if (!contains(names, name)) names.push_back(name);
      }
      if (task && is_error(task->figure)) continue;  // which a mean of points leaves out
      has_all = has_all && value;
      sum += value.value_or(0);
      ++count;
    }
    if (names.empty()) continue;
    auto& row = ranks.rows.emplace_back();
    row.push_back("floor: " + listed(names));
    row.insert(row.end(), cells.begin(), cells.end());
    row.push_back(has_all && count > 0 ? fixed(sum / count, 2) : "");
    row.resize(ranks.header.size());
  }
}

}  // namespace cloze
