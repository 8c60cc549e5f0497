#include "study/task_value.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/text.h"
#include "run/run_files.h"
#include "tasks/floors.h"
#include "tasks/predictions.h"
#include "tasks/prepared_task.h"
#include "tasks/task_metric.h"

namespace cloze {

namespace {

using nlohmann::json;

constexpr uint64_t max_task_summary = uint64_t{64} << 20;

/// Fractions are told in points, errors as they are.
double points_of(double value, const std::string& figure) { return is_error(figure) ? value : 100 * value; }

/// A figure of the test part of a run.
struct JudgedFinetuning {
  FigureOnDraws figure{};
  double floor = 0;
  std::string items{};  ///< their fingerprint
};

std::string fingerprint_of_items(const std::vector<TaskItem>& items) {
  StreamHash hash;
  for (const auto& item : items) {
    for (const auto* text : {&item.id, &item.text, &item.second}) hash.add(text->c_str(), text->size() + 1);
    for (const auto& word : item.words) hash.add(word.c_str(), word.size() + 1);
  }
  return hex_of(hash.value());
}

JudgedFinetuning judged_run(const std::string& folder, const std::string& figure) {
  const auto prepared = folder + "/" + task_folder;
  const auto opened = open_prepared_task(prepared);
  const auto& task = opened.task;
  const auto kind = task.config.kind;
  const auto test = read_prepared_part(prepared, "test").items;
  const auto read = read_predictions(folder + "/predictions.jsonl", kind, test, task.labels);
  const auto options = metric_options(task);
  JudgedFinetuning judged{.figure = figure_on_draws(kind, test, task.labels, read.predictions, figure, options),
                          .items = fingerprint_of_items(test)};
  const auto constant = constant_predictions(kind, opened.constant, test);
  for (const auto& one : values_of(kind, test, task.labels, constant, options))
    if (one.metric == figure) judged.floor = one.value.value_or(0);
  return judged;
}

/// What the summary of a run says of its task.
json task_summary(const std::string& folder) {
  const auto path = folder + "/summary.json";
  const auto again = words("; resume the run with `cloze pretrain --run ", folder, " --resume`, which judges it again");
  require<DataError>(std::filesystem::exists(path), path, ": is missing, so that the run has no figure of its task",
                     again);
  const auto summary = parse_json(read_text(path, max_task_summary));
  auto task = value_at(summary, "/task");
  require<DataError>(task.is_object() && task.contains("test") && task.contains("metric"), path,
                     ": says nothing of the test part of a task", again);
  return task;
}

/// Adds `values` times `factor` to a sum that may be empty yet.
void add_scaled(std::vector<double>& sum, const std::vector<double>& values, double factor) {
  sum.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sum[i] += factor * values[i];
}

}  // namespace

TaskOutcome outcome_of(const std::string& folder) {
  const auto task = task_summary(folder);
  TaskOutcome found;
  found.figure = task.value("metric", "");
  found.learned = task.value("learned", true);
  const auto value = value_at(task, ("/test/" + found.figure + "/value").c_str());
  found.value = value.is_number() ? points_of(value.get<double>(), found.figure) : std::nan("");
  found.task = open_prepared_task(folder + "/" + task_folder).task.config.task;
  return found;
}

ValidFigure valid_of(const std::string& folder) {
  const auto task = task_summary(folder);
  ValidFigure found{.figure = task.value("metric", "")};
  const auto best = value_at(task, "/best");
  if (best.is_number()) found.value = points_of(best.get<double>(), found.figure);
  found.is_of_test = open_prepared_task(folder + "/" + task_folder).task.is_chosen_on_test;
  return found;
}

MetricValue value_of_finetunings(const std::vector<std::string>& folders, const std::string& figure) {
  MetricValue mean;
  const double share = 1 / static_cast<double>(folders.size());
  std::vector<double> of_units, draws;
  double floor = 0;
  for (const auto& folder : folders) {
    const auto outcome = outcome_of(folder);
    const auto name = figure.empty() ? outcome.figure : figure;
    const auto judged = judged_run(folder, name);
    require<DataError>(mean.text.empty() || mean.text == judged.items, folders.front(), " and ", folder,
                       ": were judged on different items; make them again with one task file");
    mean.text = judged.items;
    mean.measured = words(outcome.task, " ", name);
    const double factor = points_of(share, name);
    mean.value += factor * judged.figure.value;
    floor += factor * judged.floor;
    mean.examples.drawn_of = judged.figure.units;
    add_scaled(of_units, judged.figure.of_units, factor);
    add_scaled(draws, judged.figure.draws, factor);
  }
  mean.floor = floor;
  if (!of_units.empty()) {
    mean.examples.count.assign(of_units.size(), 1);
    mean.examples.sum = std::move(of_units);
  }
  mean.examples.draws = std::move(draws);
  return mean;
}

}  // namespace cloze
