#include "train/tasks/task_validation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/spelling.h"
#include "run/config/evaluation_protocol.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/task_metric.h"
#include "train/callbacks/suites.h"
#include "train/callbacks/training_log.h"
#include "train/pretrain.h"

namespace cloze {

namespace {

constexpr double undefined_cost = std::numeric_limits<double>::quiet_NaN();

double cost_of(const TaskScores& scores, const std::string& metric) {
  const auto* score = score_of(scores, metric);
  if (!score) return undefined_cost;
  return is_error(metric) ? score->value : -score->value;
}

nlohmann::json value_of(double cost, const std::string& metric) {
  return std::isnan(cost) ? nlohmann::json() : nlohmann::json(is_error(metric) ? cost : -cost);
}

}  // namespace

SuiteResult suite_result_of(const std::string& name, const std::string& metric, const JudgedSplit& judged) {
  SuiteResult result{.suite = name, .scored_by = "a head of its own", .scores = judged.scores.scores, .items{}};
  auto& scores = result.scores;
  if (scores.empty()) scores.push_back({.metric = metric, .count = std::ssize(judged.predictions)});
  const auto first = std::ranges::find(scores, metric, &Score::metric);
  if (first != scores.end()) std::rotate(scores.begin(), first, first + 1);
  return result;
}

TaskValidation::TaskValidation(const RunConfig& config)
    : task_(judged_task(config.data.tokens, config.objectives)),
      valid_(read_prepared_split(config.data.tokens, "valid")),
      name_(config.task.name),
      metric_(config.task.metric),
      loss_name_(short_form(standard_form(config.objectives.at(0)))),
      cost_(undefined_cost) {
  const auto kind = task_.task.config.kind;
  auto plain = metric_options(task_.task);
  plain.resamples = 0;
  const auto& labels = task_.task.labels;
  const auto constant = constant_predictions(kind, valid_.items, labels);
  const auto floor = metrics_of(kind, valid_.items, labels, constant, plain);
  require<ConfigError>(score_of(floor, metric_) != nullptr, "task.metric is ", metric_, ", and ", name_,
                       " has no such figure; leave it as `cloze finetune` makes it");
  floor_ = cost_of(floor, metric_);
  floor_name_ = name_of_floor(kind, Floor::constant);
  if (metric_ == "loss") {
    floor_ = guessing();
    floor_name_ = "guessing evenly";
  }
  raise_floor(constant, plain);
}

/// F1 of two labels is that of the second one, which predicted for all items has more than the first.
void TaskValidation::raise_floor(std::vector<TaskPrediction> constant, const MetricOptions& options) {
  const auto& labels = task_.task.labels;
  const auto kind = task_.task.config.kind;
  if (kind->form != AnswerForm::label || labels.size() != 2) return;
  for (auto& one : constant) one.answer = label_answer(1);
  const double cost = cost_of(metrics_of(kind, valid_.items, labels, constant, options), metric_);
  if (!(cost < floor_)) return;
  floor_ = cost;
  floor_name_ = concat("always ", shortened(labels.names[1]));
}

void TaskValidation::judge(Network& network) {
  auto judged = probes_of(network) ? judge_best_probe(network) : judge_head(network);
  chosen_.no_answer_threshold = task_.setting.no_answer_threshold;
  chosen_.threshold = task_.setting.threshold;
  chosen_.temperature = task_.setting.temperature;
  cost_ = cost_of(judged.scores, metric_);
  chosen_.learned = std::isfinite(cost_) && beats_floor(judged);
  result_ = suite_result_of(name_ + "-valid", metric_, judged);
  auto loss = held_out_of(task_, valid_.items, judged, loss_name_);
  if (judged.scores.scores.empty()) {
    loss.loss = undefined_cost;
    loss.standard_error.reset();
    loss.sequences.clear();
  }
  losses_.clear();
  if (loss.count > 0) losses_.push_back(std::move(loss));
}

JudgedSplit TaskValidation::judge_head(Network& network) {
  JudgedSplit judged{.predictions = predict_items(network, task_, valid_.items, valid_.rows)};
  if (!are_finite(judged.predictions)) return judged;
  choose_setting(task_, valid_.items, metric_, judged.predictions);
  judged.scores = scores_of_predictions(task_, valid_.items, judged.predictions, /*resamples=*/0);
  return judged;
}

JudgedSplit TaskValidation::judge_best_probe(Network& network) {
  const auto& objectives = task_.objectives;
  const bool fits = bytes_of_states(network, objectives, valid_.rows, ProbedTokens::all) <= most_bytes_of_states;
  if (!states_ && fits) states_ = states_of_rows(network, objectives, valid_.rows, ProbedTokens::all);
  auto all = judge_probes(network, task_, valid_, /*resamples=*/0, states_ ? &*states_ : nullptr);
  size_t best = 0;
  for (size_t probe = 1; probe < all.size(); ++probe) {
    const double cost = cost_of(all[probe].scores, metric_), least = cost_of(all[best].scores, metric_);
    if (cost < least || (std::isnan(least) && !std::isnan(cost))) best = probe;
  }
  chosen_.probed_layer = probes_of(network)->layers()[best];
  return std::move(all[best]);
}

std::string TaskValidation::text() const {
  std::string text = "  " + result_.suite;
  for (const auto& score : result_.scores) {
    if (score.metric != metric_) continue;
    text += concat(" ", score.metric, " ", fixed_or_dash(score.value, 4));
  }
  if (chosen_.probed_layer >= 0) text += concat(" of layer ", chosen_.probed_layer);
  const double floor = is_error(metric_) ? floor_ : -floor_;
  return text + concat(" (", floor_name_, " ", fixed_or_dash(floor, 4), ")");
}

void TaskValidation::add_to(nlohmann::json& row) const { row["suites"] = to_json(std::vector{result_}); }

/// Whether the score is better than that of the majority class, the mean, `O`, or no answer of the valid part by more
/// than its interval, where it has one. Where these have none, as a constant has no correlation, it is 0.
bool TaskValidation::beats_floor(const JudgedSplit& judged) const {
  constexpr int64_t resamples = 1000;
  auto score = *score_of(judged.scores, metric_);
  if (!score.interval)
    score = *score_of(scores_of_predictions(task_, valid_.items, judged.predictions, resamples), metric_);
  const double floor = std::isnan(floor_) ? 0 : is_error(metric_) ? floor_ : -floor_;
  const auto [low, high] = score.interval.value_or(Bounds{score.value, score.value});
  return is_error(metric_) ? high < floor : low > floor;
}

void TaskValidation::conclude(double best_cost, PretrainReport& report) const {
  report.task = {{"metric", metric_},
                 {"best", value_of(best_cost, metric_)},
                 {"floor", {{"name", floor_name_}, {"value", value_of(floor_, metric_)}}},
                 {"learned", std::isfinite(best_cost) && !(best_cost >= floor_)}};
}

}  // namespace cloze
