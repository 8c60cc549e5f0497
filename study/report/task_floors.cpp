#include "study/report/task_report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "run/run_files.h"
#include "study/execution/runs.h"
#include "study/measures/task_value.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The floors of a file; none of one that is missing, damaged or was edited, which then is written again.
json kept_floors(const std::string& path) {
  try {
    const auto floors = sealed_fields(path, "floors", "nothing is kept", "")["floors"];
    return floors.is_object() ? floors : json::object();
  } catch (const Error&) {
    return json::object();
  }
}

/// Predictions of the words of the training part; none where there is nothing to tell apart.
std::optional<std::vector<TaskPrediction>> predictions_by_words(const Task& task, const std::string& rows,
                                                                const std::vector<TaskItem>& test) {
  if (!task.config.kind->has_floor_of_words) return {};
  const auto train = read_prepared_split(rows, "train").items;
  std::set<int64_t> labels;
  for (const auto& item : train)
    if (item.gold.label != unknown_label) labels.insert(item.gold.label);
  if (labels.size() < 2) return {};
  return floor_predictions(task.config.kind, Floor::words, train, test, task.labels);
}

/// A metric of predictions, in points where it is no error.
std::optional<double> score_of_floor(const Task& task, const std::vector<TaskItem>& test,
                                     const std::vector<TaskPrediction>& predictions, const std::string& metric) {
  for (const auto& one : values_of(task.config.kind, test, task.labels, predictions, metric_options(task)))
    if (one.metric == metric && one.is_defined()) return points_of(one.value, metric);
  return {};
}

}  // namespace

std::optional<NamedFloor> floor_of_words(const std::string& folder, const std::string& metric) {
  const auto task = open_prepared_task(folder).task;
  const auto test = read_prepared_split(folder, "test").items;
  const auto predictions = predictions_by_words(task, folder, test);
  const auto value = predictions ? score_of_floor(task, test, *predictions, metric) : std::nullopt;
  if (!value) return {};
  return NamedFloor{.name = name_of_floor(task.config.kind, Floor::words), .value = *value};
}

TaskFloors::TaskFloors(const Plan& tasks) : tasks_(tasks), path_(tasks.folder + "/floors.json") {
  const auto kept = kept_floors(path_);
  for (const auto& [key, value] : kept.items())
    of_words_[key] = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<NamedFloor> TaskFloors::find(const std::string& task, const std::string& metric, Floor floor) {
  const auto& rows = rows_of(task);
  if (!rows) return {};
  const auto& of = rows->prepared.task;
  std::optional<double> value;
  if (floor == Floor::words) {
    value = of_words(*rows, metric);
  } else {
    const auto test = read_prepared_split(rows->folder, "test").items;
    value = score_of_floor(of, test, constant_predictions(of.config.kind, test, of.labels), metric);
  }
  if (!value) return {};
  return NamedFloor{.name = name_of_floor(of.config.kind, floor), .value = *value};
}

const std::optional<TaskFloors::Rows>& TaskFloors::rows_of(const std::string& task) {
  const auto [known, is_new] = rows_.emplace(task, std::nullopt);
  if (!is_new) return known->second;
  const auto run = std::ranges::find_if(tasks_.runs, [&](const PlannedRun& one) {
    return one.finetuning.task == task && status_of(tasks_, one).state == RunState::done;
  });
  if (run == tasks_.runs.end()) return known->second;
  const auto folder = run->folder + "/" + task_folder;
  known->second = Rows{.folder = folder, .prepared = open_prepared_task(folder)};
  return known->second;
}

std::optional<double> TaskFloors::of_words(const Rows& rows, const std::string& metric) {
  const auto key = concat(rows.prepared.fingerprint, " ", metric, " ", CLOZE_VERSION);
  const auto [known, is_new] = of_words_.emplace(key, std::nullopt);
  if (!is_new) return known->second;
  if (const auto floor = floor_of_words(rows.folder, metric)) known->second = floor->value;
  keep();
  return known->second;
}

void TaskFloors::keep() const {
  json floors = json::object();
  for (const auto& [key, value] : of_words_) floors[key] = value ? json(*value) : json();
  try {
    write_atomic(path_, json_text(json{{"floors", floors}, {"xxh3", hash_hex(json_text(floors))}}, 1) + "\n");
  } catch (const Error&) {
    // Whoever may only read the study has the same report, a little later.
  }
}

}  // namespace cloze
