#include "evaluation/tasks/judged_task.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/store/token_store.h"
#include "evaluation/tasks/generated_items.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/item_clusters.h"
#include "tasks/scores/span_answer.h"
#include "tasks/scores/task_metric.h"
#include "tasks/scores/temperature.h"

namespace cloze {

namespace {

RowLogits logits_of_row(const Tensor& logits) {
  const auto values = logits.to(at::kDouble).contiguous();
  const auto* first = values.data_ptr<double>();
  return {.values = {first, first + values.numel()}, .columns = values.size(-1)};
}

/// What a squared error is divided by, so that it is that of training.
double squared_range(const Objectives& objectives) {
  const auto* head = task_head_of(objectives.at(0));
  const auto scale = head ? head->scale : std::vector<double>();
  return scale.empty() ? 1 : (scale[1] - scale[0]) * (scale[1] - scale[0]);
}

/// Throws DataError for a head whose outputs are not what the task asks for.
void require_same_labels(const Task& task, const Objectives& objectives, const std::string& folder) {
  const auto& kind = task.config.kind;
  const bool is_same = !objectives.empty() && as_kind(objectives[0]).name() == kind->head &&
                       (!kind->learns_labels || task_head_of(objectives[0])->labels == task.labels.names);
  require<DataError>(is_same, folder, ": has rows of another task than the head of the run, or with other labels; ",
                     "restore it, or fine-tune again in another folder");
}

}  // namespace

JudgedTask judged_task(const std::string& folder, const Objectives& objectives, const ChosenOnValid& chosen) {
  auto prepared = open_prepared_task(folder);
  auto& task = prepared.task;
  require_same_labels(task, objectives, folder);
  auto setting = prediction_setting(task.config, task.labels, prepared.may_lack_answers);
  setting.no_answer_threshold = chosen.no_answer_threshold;
  setting.threshold = chosen.threshold;
  setting.temperature = chosen.temperature;
  const auto tokenizer = task.config.kind->generates ? TokenStore(folder, "test").tokenizer() : Tokenizer();
  return {.task = std::move(task), .objectives = objectives, .setting = setting, .tokenizer = tokenizer};
}

JudgedTask task_of_head(const std::string& file, const Objectives& objectives) {
  Task task{.config = read_task_config(file), .file = file};
  if (task.config.kind->generates && generative_of(objectives)) {
    const auto setting = prediction_setting(task.config, task.labels, /*may_have_no_answer=*/false);
    task.test.file = task.config.data.test;
    return {.task = std::move(task), .objectives = objectives, .setting = setting};
  }
  const auto* head = objectives.size() == 1 ? task_head_of(objectives[0]) : nullptr;
  require<ConfigError>(head != nullptr, file, ": the network has no head of a task; fine-tune it first");
  require<ConfigError>(task.config.kind->head == head->name(), file, ": is of the kind ", name_of(task.config.kind),
                       ", and the head of the network of the kind ", head->name(), "; name a task of that kind");
  task.test.file = task.config.data.test;
  const bool has_labels = !task.config.labels.items.empty();
  task.labels = has_labels ? order_labels(task.config, nullptr, LabelPool(), head->labels)
                           : TaskLabels{.names = head->labels, .written = head->labels};
  const auto setting = prediction_setting(task.config, task.labels, /*may_have_no_answer=*/false);
  return {.task = std::move(task), .objectives = objectives, .setting = setting};
}

namespace {

/// Predictions for items by the outputs of their rows.
std::vector<ItemPrediction> predictions_by(const TaskOutputs& outputs, const JudgedTask& task,
                                           const std::vector<TaskItem>& items, const std::vector<TaskRow>& rows) {
  std::vector<RowLogits> logits;
  for (const auto& of_row : outputs.logits) logits.push_back(logits_of_row(of_row));
  std::vector<ItemPrediction> predictions;
  for (size_t i = 0, first = 0; i < items.size(); ++i) {
    size_t end = first;
    while (end < rows.size() && rows[end].item == static_cast<int64_t>(i)) ++end;
    predictions.push_back(predict_item(items[i], std::span(rows).subspan(first, end - first),
                                       std::span(logits).subspan(first, end - first), task.setting));
    first = end;
  }
  return predictions;
}

}  // namespace

std::vector<ItemPrediction> predict_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                          const std::vector<TaskRow>& rows, std::optional<uint64_t> dropout_key) {
  if (task.task.config.kind->generates) return generate_items(network, task, items, rows);
  return predictions_by(run_rows(network, task.objectives, rows, tokens_of_batch, dropout_key), task, items, rows);
}

bool are_finite(const std::vector<ItemPrediction>& predictions) {
  const auto is_number = [](double value) { return std::isfinite(value); };
  return std::ranges::all_of(predictions, [&](const ItemPrediction& one) {
    return (one.count == 0 || is_number(one.loss)) && is_number(one.prediction.answer.value) &&
           is_number(one.answer.null_score) && std::ranges::all_of(one.prediction.probabilities, is_number);
  });
}

std::vector<TaskPrediction> plain_predictions(const std::vector<ItemPrediction>& predictions) {
  std::vector<TaskPrediction> plain;
  for (const auto& one : predictions) plain.push_back(one.prediction);
  return plain;
}

TaskScores scores_of_predictions(const JudgedTask& task, const std::vector<TaskItem>& items,
                                 const std::vector<ItemPrediction>& predictions, int64_t resamples) {
  const auto made = plain_predictions(predictions);
  auto options = metric_options(task.task);
  options.resamples = resamples;
  return metrics_of(task.task.config.kind, items, task.task.labels, made, options);
}

namespace {

/// The threshold, in hundredths, at which the metric is best; of equal ones that closest to a half.
double best_threshold(const JudgedTask& task, const std::vector<TaskItem>& items, const std::string& metric,
                      const std::vector<ItemPrediction>& predictions) {
  auto setting = task.setting;
  auto options = metric_options(task.task);
  options.resamples = 0;
  auto decided = plain_predictions(predictions);
  double best = usual_threshold, least = std::numeric_limits<double>::infinity();
  for (int offset = 0; offset < 50; ++offset)
    for (const int hundredths : {50 - offset, 50 + offset}) {
      setting.threshold = hundredths / 100.0;
      for (auto& one : decided) decide_labels(one, setting);
      const auto scores = metrics_of(setting.kind, items, task.task.labels, decided, options);
      const auto* score = score_of(scores, metric);
      if (!score || !score->is_defined()) continue;
      const double cost = is_error(metric) ? score->value : -score->value;
      if (cost >= least) continue;
      least = cost;
      best = setting.threshold;
    }
  return best;
}

}  // namespace

void choose_setting(JudgedTask& task, const std::vector<TaskItem>& items, const std::string& metric,
                    std::vector<ItemPrediction>& predictions) {
  if (task.setting.kind->form == AnswerForm::label)
    task.setting.temperature = fitted_temperature(items, plain_predictions(predictions));
  if (task.task.config.choose_threshold) {
    task.setting.threshold = best_threshold(task, items, metric, predictions);
    for (auto& one : predictions) decide_labels(one.prediction, task.setting);
  }
  if (!task.setting.may_have_no_answer) return;
  auto answering = task.setting;
  answering.may_have_no_answer = false;
  std::vector<TaskPrediction> answered;
  for (auto& prediction : predictions) {
    decide_answer(prediction, answering);
    answered.push_back(prediction.prediction);
  }
  const auto measure = metric.ends_with("f1") ? AnswerMeasure::f1 : AnswerMeasure::exact;
  task.setting.no_answer_threshold = best_answer_threshold(items, answered, measure);
  for (auto& prediction : predictions) decide_answer(prediction, task.setting);
}

namespace {

/// Predictions with their scores.
JudgedSplit judged_by(std::vector<ItemPrediction> predictions, const JudgedTask& task, const PreparedSplit& split,
                      int64_t resamples) {
  JudgedSplit judged{.predictions = std::move(predictions)};
  if (are_finite(judged.predictions))
    judged.scores = scores_of_predictions(task, split.items, judged.predictions, resamples);
  return judged;
}

}  // namespace

JudgedSplit judge_split(Network& network, const JudgedTask& task, const PreparedSplit& split, int64_t resamples) {
  return judged_by(predict_items(network, task, split.items, split.rows), task, split, resamples);
}

std::vector<JudgedSplit> judge_probes(Network& network, const JudgedTask& task, const PreparedSplit& split,
                                      int64_t resamples, const RowStates* kept) {
  std::vector<JudgedSplit> all;
  for (const auto& outputs : run_probes(network, task.objectives, split.rows, kept))
    all.push_back(judged_by(predictions_by(outputs, task, split.items, split.rows), task, split, resamples));
  return all;
}

void add_constant_floor(const JudgedTask& task, const std::vector<TaskItem>& items, TaskScores& scores) {
  const auto kind = task.task.config.kind;
  add_floor(kind, Floor::constant, constant_predictions(kind, items, task.task.labels), items, task.task.labels,
            metric_options(task.task), scores);
}

namespace {

/// The loss of guessing evenly at an item.
double guess_at(const TaskItem& item, const JudgedTask& task, double longest_row) {
  if (item.gold.form == AnswerForm::value) {
    const auto& scale = task_head_of(task.objectives.at(0))->scale;
    const double off = item.gold.value - (scale.empty() ? 0 : scale[0]);
    return off * off / squared_range(task.objectives);
  }
  if (task.task.config.kind->generates) return std::log(static_cast<double>(task.tokenizer.size()));
  if (!item.candidates.empty()) return std::log(static_cast<double>(item.candidates.size()));
  const auto labels = static_cast<double>(task.task.labels.size());
  return std::log(task.task.config.kind->has_sets ? 2 : labels > 0 ? labels : longest_row);
}

}  // namespace

double loss_of_guessing(const JudgedTask& task, const PreparedSplit& split) {
  size_t longest = 1;
  for (const auto& row : split.rows) longest = std::max(longest, row.ids.size());
  double sum = 0;
  for (const auto& item : split.items) sum += guess_at(item, task, static_cast<double>(longest));
  return sum / static_cast<double>(std::max<size_t>(split.items.size(), 1));
}

HeldOut held_out_of(const JudgedTask& task, const std::vector<TaskItem>& items, const JudgedSplit& judged,
                    const std::string& name) {
  HeldOut held_out{.name = name, .weight = as_kind(task.objectives.at(0)).weight};
  const double range = squared_range(task.objectives);
  std::vector<const TaskItem*> all;
  for (const auto& item : items) all.push_back(&item);
  const auto clusters = clusters_of_items(all);
  double sum = 0;
  for (size_t i = 0; i < judged.predictions.size(); ++i) {
    const auto& one = judged.predictions[i];
    const auto count = static_cast<double>(one.count);
    held_out.sequences.push_back(
        {.sum = one.count > 0 ? count * one.loss / range : 0, .count = count, .document = clusters[i]});
    held_out.count += one.count;
    sum += held_out.sequences.back().sum;
  }
  held_out.loss = sum / static_cast<double>(std::max<int64_t>(held_out.count, 1));
  held_out.standard_error = standard_error(held_out.sequences);
  if (const auto* score = score_of(judged.scores, "accuracy"); score && score->is_defined())
    held_out.accuracy = score->value;
  return held_out;
}

}  // namespace cloze
