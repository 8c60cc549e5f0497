// A number for a text or for a pair of texts.
#include <charconv>
#include <cmath>

#include "core/spelling.h"
#include "core/text.h"
#include "tasks/figures/label_names.h"
#include "tasks/figures/task_scorer.h"
#include "tasks/inspect_task.h"
#include "tasks/kinds/answers.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer value_scorer(const ScoredItems& scored);

namespace {

double target_in(const TaskRecord& record) {
  constexpr double most_target = 1e15;  // its square, and sums of those, are numbers of 32 bits
  const auto& text = record.label_text();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  const bool may_be_header = record.reader().may_have_taken_header() && record.is_first;
  if (text.empty() || is_no_number(text))
    fail<MissingValue>(record.where(), ": its target is '", text,
                       "', which is no number; give it one, or leave such items out with --skip-bad");
  if (!is_number)
    fail<DataError>(
        record.where(), ": its target is '", shortened(text), "', which is no number; ",
        may_be_header ? "if this is a line of names, write `header: true`" : "give it one, or remove the item");
  if (std::abs(value) > most_target)
    fail<DataError>(record.where(), ": its target is '", shortened(text), "', beyond ", shortest(most_target),
                    ", and losses square it; divide all targets by the same number");
  return value;
}

/// Counts a target that is not in the range of `scale`.
void note_scale(double value, TaskRecord& record) {
  const auto& scale = record.config.scale;
  if (scale.empty() || (value >= static_cast<double>(scale[0]) && value <= static_cast<double>(scale[1]))) return;
  if (record.out_of_range.count++ == 0) record.out_of_range.first = concat(record.where(), " (", shortest(value), ")");
}

struct Regression final : TextKindRules {
  Regression()
      : TextKindRules({.name = "regression",
                       .words = "a number for a text or for a pair of texts",
                       .form = AnswerForm::value,
                       .head = TaskKind::regression,
                       .has_scale = true,
                       .key = "value",
                       .is_right_or_wrong = false,
                       .floor_name = "mean"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    item.gold = value_answer(target_in(record));
    note_scale(item.gold.value, record);
    return true;
  }
  bool gold_fits(const TaskItem&, int64_t) const override { return true; }

  void set_target(const TaskAnswer& gold, int64_t, TaskRow& row) const override { row.value = gold.value; }
  bool target_fits(const TaskRow& row, int64_t) const override { return row.labels.empty(); }

  void predict(const TaskItem& item, std::span<const TaskRow>, std::span<const RowLogits> logits,
               const PredictionSetting&, ItemPrediction& made) const override {
    const double value = mean_of_rows(logits).at(0), off = value - item.gold.value;
    made.prediction.answer = value_answer(value);
    if (!item.gold.is_known()) return;
    made.loss = off * off;
    made.count = 1;
  }
  std::string text_of(const TaskAnswer& answer, const TaskLabels&) const override { return digits(answer.value, 9); }
  nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item, const TaskLabels&) const override {
    return {{"item", item.id}, {"value", made.prediction.answer.value}};
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames&, const std::string& where) const override {
    return value_answer(number_of(value, where));
  }
  nlohmann::json value_of_line(const std::string& text, const LabelNames&, const std::string& where) const override {
    return number_of(text, where);
  }

  void check_prediction(const TaskItem& item, const TaskPrediction& prediction, int64_t) const override {
    require_gold(item, form, "value");
    require<DataError>(std::isfinite(prediction.answer.value), "the predicted value of item '", item.id,
                       "' is not a finite number");
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems&) const override { return {value_scorer}; }
  TaskAnswer constant_answer(const std::vector<TaskItem>& items, const TaskLabels&) const override {
    double sum = 0, count = 0;
    for (const auto& item : items)
      if (item.gold.is_known()) {
        sum += item.gold.value;
        ++count;
      }
    return value_answer(count > 0 ? sum / count : 0);
  }

  void write_target(const TaskRow& row, const TaskItem& item, nlohmann::ordered_json& to) const override {
    to["label"] = item.gold.is_known() ? nlohmann::ordered_json(row.value) : nlohmann::ordered_json();
  }
  std::string target_text(const TaskRow& row, const TaskItem& item, const TaskLabels&) const override {
    return item.gold.is_known() ? shortest(row.value) : "no value";
  }
  void write_counts(const InspectedPart& part, nlohmann::ordered_json& to) const override {
    to["values"] = {{"least", part.least}, {"mean", part.mean}, {"greatest", part.greatest}};
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_regression() { return std::make_unique<Regression>(); }

}  // namespace cloze
