// A number for a text or for a pair of texts.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/spelling.h"
#include "core/text.h"
#include "tasks/scores/task_scorer.h"
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
  const bool may_be_header = record.reader().first_line_may_be_header() && record.is_first;
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

struct Regression final : TaskKindRules {
  Regression()
      : TaskKindRules({.name = "regression",
                       .form = AnswerForm::value,
                       .head = "regression",
                       .has_scale = true,
                       .gold_name = "value",
                       .key = "value",
                       .is_right_or_wrong = false,
                       .floor_name = "mean"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    item.gold = value_answer(target_in(record));
    note_scale(item.gold.value, record);
    return true;
  }
  /// Most have one and the same target, which lies well outside of those of the training split.
  std::string unjudged(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train) const override {
    if (items.empty() || train.empty()) return "";
    std::vector<double> targets;
    for (const auto& item : items) targets.push_back(item.gold.value);
    std::ranges::sort(targets);
    const double middle = targets[targets.size() / 2];
    const auto same = std::ranges::count(targets, middle);
    const auto [least, greatest] = std::ranges::minmax(train, {}, [](const TaskItem& item) { return item.gold.value; });
    const double margin = (greatest.gold.value - least.gold.value) / 10;  // that another draw of items may go beyond
    const bool is_outside = middle < least.gold.value - margin || middle > greatest.gold.value + margin;
    if (!is_outside || 2 * same <= std::ssize(targets)) return "";
    return concat(same, " of ", counted(targets.size(), "target"), " are ", shortest(middle),
                  ", and those of the training part are ", shortest(least.gold.value), " to ",
                  shortest(greatest.gold.value));
  }
  void predict(const TaskItem& item, std::span<const TaskRow>, std::span<const RowLogits> logits,
               const PredictionSetting&, ItemPrediction& made) const override {
    const double value = mean_of_rows(logits).at(0), off = value - item.gold.value;
    made.prediction.answer = value_answer(value);
    if (!item.gold.is_known()) return;
    made.loss = off * off;
    made.count = 1;
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems&) const override { return {value_scorer}; }
  void write_counts(const InspectedSplit& split, nlohmann::ordered_json& to) const override {
    to["values"] = {{"least", split.least}, {"mean", split.mean}, {"greatest", split.greatest}};
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_regression() { return std::make_unique<Regression>(); }

}  // namespace cloze
