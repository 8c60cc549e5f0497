#include "study/measures/task_value.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/report/score_json.h"
#include "core/text.h"
#include "run/records/task_summary.h"
#include "run/run_files.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/predictions.h"
#include "tasks/scores/task_metric.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

double points_of(double value, const std::string& metric) { return is_error(metric) ? value : 100 * value; }

namespace {

using nlohmann::json;

/// A metric of the test part of a run.
struct JudgedFinetuning {
  ScoreOnDraws score{};
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

/// Of a run that says itself that the metric is undefined, as where its training diverged, the predictions are not
/// read: they may be no numbers.
JudgedFinetuning without_score(const std::string& folder) {
  return {.score = {.value = std::nan("")},
          .items = fingerprint_of_items(read_prepared_split(folder + "/" + task_folder, "test").items)};
}

JudgedFinetuning judged_run(const std::string& folder, const std::string& metric) {
  const auto [prepared, test, predictions] = read_judged_test(folder);
  const auto& task = prepared.task;
  const auto kind = task.config.kind;
  const auto options = metric_options(task);
  JudgedFinetuning judged{.score = score_on_draws(kind, test, task.labels, predictions, metric, options),
                          .items = fingerprint_of_items(test)};
  const auto constant = constant_predictions(kind, test, task.labels);
  for (const auto& one : values_of(kind, test, task.labels, constant, options))
    if (one.metric == metric && one.is_defined()) judged.floor = one.value;
  return judged;
}

/// Adds `values` times `factor` to a sum that may be empty yet.
void add_scaled(std::vector<double>& sum, const std::vector<double>& values, double factor) {
  sum.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sum[i] += factor * values[i];
}

}  // namespace

JudgedTest read_judged_test(const std::string& folder) {
  const auto summary = read_task_summary(folder);
  const auto rows = folder + "/" + task_folder;
  JudgedTest test{.prepared = open_prepared_task(rows), .items = read_prepared_split(rows, "test").items};
  require<DataError>(!summary.contains("rows") || summary["rows"] == test.prepared.fingerprint, rows,
                     ": has other rows than those that the run was judged on; restore it, or fine-tune again in "
                     "another folder");
  const auto& task = test.prepared.task;
  test.predictions =
      read_predictions(folder + "/predictions.jsonl", task.config.kind, test.items, task.labels).predictions;
  return test;
}

TaskOutcome outcome_of(const std::string& folder) {
  const auto summary = read_task_summary(folder);
  TaskOutcome outcome{.metric = string_at(summary, "/metric")};
  const auto test = score_of(outcome.metric, value_at(summary, "/test").value(outcome.metric, json())),
             valid = score_of(outcome.metric, {{"value", value_at(summary, "/best")}});
  outcome.value = points_of(test.value, outcome.metric);
  outcome.valid = points_of(valid.value, outcome.metric);
  outcome.items = test.count;
  outcome.learned = value_at(summary, "/learned") != false;
  const auto task = open_prepared_task(folder + "/" + task_folder).task;
  outcome.task = task.config.task;
  outcome.is_chosen_on_test = task.is_chosen_on_test;
  return outcome;
}

MetricValue value_of_finetunings(const std::vector<std::string>& folders, const std::string& metric) {
  MetricValue mean;
  const double fraction = 1 / static_cast<double>(folders.size());
  std::vector<double> of_units, draws;
  double floor = 0;
  for (const auto& folder : folders) {
    const auto outcome = outcome_of(folder);
    const auto name = metric.empty() ? outcome.metric : metric;
    const bool has_none = name == outcome.metric && std::isnan(outcome.value);
    const auto judged = has_none ? without_score(folder) : judged_run(folder, name);
    require<DataError>(mean.text.empty() || mean.text == judged.items, folders.front(), " and ", folder,
                       ": were judged on different items; make them again with one task file");
    mean.text = judged.items;
    mean.measured = concat(outcome.task, " ", name);
    const double factor = points_of(fraction, name);
    mean.value += factor * judged.score.value;
    floor += factor * judged.floor;
    mean.examples.drawn_of = judged.score.units;
    mean.examples.items = is_error(name) ? 0 : judged.score.units;
    mean.examples.documents = judged.score.clusters;
    add_scaled(of_units, judged.score.of_units, factor);
    add_scaled(draws, judged.score.draws, factor);
  }
  mean.floor = floor;
  for (const double one : of_units) {
    const bool is_left_out = std::isnan(one);
    mean.examples.sum.push_back(is_left_out ? 0 : one);
    mean.examples.count.push_back(is_left_out ? 0 : 1);
  }
  mean.examples.draws = std::move(draws);
  return mean;
}

}  // namespace cloze
