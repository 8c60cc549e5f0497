#include "evaluation/judged_task.h"

#include <algorithm>

#include "core/error.h"
#include "objectives/task_heads/run_rows.h"

namespace cloze {

namespace {

RowLogits logits_of_row(const Tensor& logits) {
  const auto values = logits.to(at::kDouble).contiguous();
  const auto* first = values.data_ptr<double>();
  return {.values = {first, first + values.numel()}, .columns = values.size(-1)};
}

bool has_unanswerable(const std::vector<TaskItem>& items) {
  return std::any_of(items.begin(), items.end(), [](const TaskItem& item) {
    const auto* gold = std::get_if<GoldAnswers>(&item.gold);
    return gold && gold->answers.empty();
  });
}

/// Throws DataError for a head whose outputs are not what the task asks for.
void require_same_labels(const Task& task, const Objectives& objectives, const std::string& folder) {
  TaskKind kind{};
  const auto* head = objectives.empty() ? nullptr : task_head_of(objectives[0], &kind);
  const bool is_same =
      head && kind == task.config.kind && (kind == TaskKind::choice || head->labels == task.labels.names);
  require<DataError>(is_same, folder, ": has rows of another task than the head of the run, or with other labels; ",
                     "restore it, or fine-tune again in another folder");
}

}  // namespace

JudgedTask judged_task(const std::string& folder, const Objectives& objectives) {
  auto task = open_prepared_task(folder).task;
  require_same_labels(task, objectives, folder);
  const bool may_lack_answers =
      task.config.kind == TaskKind::spans && has_unanswerable(read_prepared_part(folder, "train").items);
  const auto setting = prediction_setting(task.config, task.labels, may_lack_answers);
  return {.task = std::move(task), .objectives = objectives, .setting = setting};
}

std::vector<ItemPrediction> predict_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                          const std::vector<TaskRow>& rows) {
  const auto outputs = run_rows(network, task.objectives, rows);
  std::vector<RowLogits> logits;
  for (const auto& of_row : outputs.logits) logits.push_back(logits_of_row(of_row));
  std::vector<ItemPrediction> found;
  for (size_t i = 0, first = 0; i < items.size(); ++i) {
    size_t end = first;
    while (end < rows.size() && rows[end].item == static_cast<int64_t>(i)) ++end;
    found.push_back(predict_item(items[i], std::span(rows).subspan(first, end - first),
                                 std::span(logits).subspan(first, end - first), task.setting));
    first = end;
  }
  return found;
}

TaskFigures figures_of_predictions(const JudgedTask& task, const std::vector<TaskItem>& items,
                                   const std::vector<ItemPrediction>& predictions, int64_t resamples) {
  std::vector<TaskPrediction> made;
  for (const auto& one : predictions) made.push_back(one.prediction);
  MetricOptions options;
  options.resamples = resamples;
  return metrics_of(task.task.config.kind, items, task.task.labels, made, options);
}

JudgedPart judge_part(Network& network, const JudgedTask& task, const PreparedPart& part, int64_t resamples) {
  JudgedPart judged{.predictions = predict_items(network, task, part.items, part.rows)};
  judged.figures = figures_of_predictions(task, part.items, judged.predictions, resamples);
  return judged;
}

}  // namespace cloze
