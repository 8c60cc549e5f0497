#include "train/tasks/task_test.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "run/checkpoints/chosen_checkpoint.h"
#include "run/records/suite_units.h"
#include "run/records/task_summary.h"
#include "tasks/scores/scores_output.h"
#include "tasks/scores/reliability.h"
#include "tasks/scores/temperature.h"
#include "train/callbacks/suites.h"
#include "train/callbacks/training_log.h"
#include "train/pretrain.h"
#include "train/tasks/task_validation.h"

namespace cloze {

namespace {

constexpr int64_t test_resamples = 1000;
constexpr size_t most_hardest = 50;

std::string prediction_lines(const JudgedTask& task, const PreparedSplit& split, const JudgedSplit& judged) {
  std::string lines;
  for (size_t i = 0; i < split.items.size(); ++i)
    lines += json_text(task.task.config.kind->json_of(judged.predictions[i], split.items[i], task.task.labels)) + "\n";
  return lines;
}

/// What an item asks, in a line.
std::string asked_of(const TaskItem& item) {
  auto text = item.text;
  for (const auto& word : item.words) text += (text.empty() ? "" : " ") + word;
  if (!item.second.empty()) text += " / " + item.second;
  return shortened(in_one_line(text));
}

/// The items with the highest losses, of which some may have a wrong label.
std::string hardest_items(const JudgedTask& task, const PreparedSplit& split, const JudgedSplit& judged) {
  std::vector<size_t> order;
  for (size_t i = 0; i < split.items.size(); ++i)
    if (!std::isnan(judged.predictions[i].loss)) order.push_back(i);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return judged.predictions[i].loss; });
  order.resize(std::min(order.size(), most_hardest));
  const auto kind = task.task.config.kind;
  const auto answer = [&](const std::string& text) { return escaped_markdown(kind->shown(text)); };
  auto text =
      concat("# The hardest items of ", escaped_markdown(task.task.config.task),
             "\n\nThe items of the test part with the highest losses; labels that are wrong stand among them.\n\n",
             "| item | loss | label | predicted | text |\n|---|---|---|---|---|\n");
  for (const auto i : order) {
    const auto& item = split.items[i];
    text += concat("| ", escaped_markdown(item.id), " | ", fixed_or_dash(judged.predictions[i].loss, 3), " | ",
                   answer(text_of_gold(item, kind, task.task.labels)), " | ",
                   answer(kind->spelled(judged.predictions[i].prediction.answer, task.task.labels)), " | ",
                   escaped_markdown(asked_of(item)), " |\n");
  }
  return text;
}

/// `sst2 test of step-00000630: accuracy 82.91 % [80.27, 85.26], n 872; 16 more figures in summary.json`
std::string line_of(const SuiteResult& result, const std::string& checkpoint) {
  const auto& score = result.scores.front();
  const auto& metric = score.metric;
  auto text = concat(result.suite, " test of ", checkpoint, ": ", metric, " ", score_cell(score.value, metric),
                     is_proportion(metric) && score.is_defined() ? " %" : "", score.interval ? " " : "",
                     interval_cell(score), ", n ", score.count);
  const auto others = result.scores.size() - 1;
  return others == 0 ? text : concat(text, "; ", others, " more figures in summary.json");
}

/// The scores of all probes of a network, judged on both splits.
LayerCurve curve_of(const RunConfig& config, const LayerProbes& probes, const std::vector<JudgedSplit>& valid,
                    const std::vector<JudgedSplit>& test) {
  const auto& metric = config.task.metric;
  LayerCurve curve{.task = config.task.name, .metric = metric, .best = probes.chosen()};
  const auto score_in = [&](const JudgedSplit& judged) {
    const auto* score = score_of(judged.scores, metric);
    return score ? *score : Score{.metric = metric};
  };
  for (size_t i = 0; i < test.size(); ++i)
    curve.points.push_back({.layer = probes.layers()[i], .valid = score_in(valid[i]), .test = score_in(test[i])});
  return curve;
}

void log_curve(const LayerCurve& curve) {
  std::istringstream lines(to_text(table_of(curve)));
  for (std::string line; std::getline(lines, line);) log_info("train", line);
  log_info("train", verdict_of(curve));
}

}  // namespace

void TaskTest::finish(Training& training) {
  const auto& config = training.config;
  const auto start = Clock::now();
  training.stepper->end();  // the last checkpoint is saved, and the best one needs the memory
  training.network.reset();
  const auto best = open_on_own_device(training.options.run);
  const auto chosen = chosen_on_valid(best.state);
  learned_ = chosen.learned;
  const auto task = judged_task(config.data.tokens, config.objectives, chosen);
  const auto split = read_prepared_split(config.data.tokens, "test");
  const auto* probes = probes_of(*best.network);
  const auto of_probes = probes ? judge_probes(*best.network, task, split, test_resamples) : std::vector<JudgedSplit>();
  const auto judged = probes ? of_probes[probes->chosen()] : judge_split(*best.network, task, split, test_resamples);
  result_ = suite_result_of(config.task.name, config.task.metric, judged);
  result_->notes = task.task.notes;
  predictions_ = prediction_lines(task, split, judged);
  training.write("predictions.jsonl", predictions_);
  training.write("hardest.md", hardest_items(task, split, judged));
  if (judged.scores.confusion)
    training.write("confusion.svg", confusion_svg(config.task.name, *judged.scores.confusion));
  end_progress();
  if (chosen.temperature > 0 && !judged.scores.scores.empty()) calibrate(training, task, split, judged);
  if (of_probes.size() > 1) {
    const auto valid = read_prepared_split(config.data.tokens, "valid");
    layers_ = curve_of(config, *probes, judge_probes(*best.network, task, valid, /*resamples=*/0), of_probes);
    training.write("layers.svg", layers_svg(*layers_));
    log_curve(*layers_);
  }
  const auto checkpoint = std::filesystem::path(best.checkpoint).filename().string();
  log_info("train", line_of(*result_, checkpoint) + (task.task.is_chosen_on_test ? "; chosen on these items" : ""));
  training.time_breakdown.evaluation += seconds_since(start);
}

void TaskTest::calibrate(Training& training, const JudgedTask& task, const PreparedSplit& split,
                         const JudgedSplit& judged) {
  const auto temperature = task.setting.temperature;
  const auto as_predicted = plain_predictions(judged.predictions);
  auto calibrated = judged.predictions;
  for (auto& one : calibrated) one.prediction.probabilities = at_temperature(one.prediction.probabilities, temperature);
  const auto scores = scores_of_predictions(task, split.items, calibrated, /*resamples=*/0);
  calibration_ = nlohmann::json{{"temperature", temperature}};
  std::string said;
  for (const auto* metric : {"ece", "nll"}) {
    const auto *before = score_of(judged.scores, metric), *after = score_of(scores, metric);
    if (!before || !before->is_defined() || !after->is_defined()) continue;
    calibration_[metric] = after->value;
    said += concat(", ", metric, " of the test part ", fixed(before->value, 3), " -> ", fixed(after->value, 3));
  }
  training.write("reliability.svg", reliability_svg(training.config.task.name, split.items, as_predicted, temperature));
  log_info("train", concat("temperature ", fixed(temperature, 2), " fitted on the valid part", said));
}

void TaskTest::conclude(const Training& training, PretrainReport& report) {
  auto& task = report.task;
  if (layers_) {
    task["layer"] = layers_->points.at(layers_->best).layer;
    task["layers"] = to_json(*layers_);
  }
  if (learned_) task["learned"] = *learned_;
  if (!calibration_.is_null()) task["calibrated"] = calibration_;
  if (result_) {
    report.suites.push_back(*result_);
    task["test"] = to_json(report.suites)[result_->suite];
    task["notes"] = result_->notes;
    seal_task_summary(task, training.store.fingerprint(), predictions_);
  }
  if (task["learned"] == true) return;
  const auto& own = training.config.task;
  log_warning("train",
              concat(training.options.run, ": did not learn: its ", own.metric, " on the valid part of ", own.name,
                     " is not shown to be better than that of ", task["floor"]["name"].get<std::string>(),
                     std::isfinite(report.held_out_loss)
                         ? "; raise optimizer.learning_rate or train.budget"
                         : "; lower optimizer.learning_rate, with which its last predictions are not finite",
                     ", or look at the rows with `cloze inspect task`"));
}

}  // namespace cloze
