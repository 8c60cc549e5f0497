// One label of a text or of a pair of texts.
#include <algorithm>

#include "tasks/figures/label_names.h"
#include "tasks/figures/label_scores.h"
#include "tasks/kinds/answers.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer class_scorer(const ScoredItems& scored);
TaskScorer question_scorer(const ScoredItems& scored);

namespace {

struct Classification final : TextKindRules {
  Classification()
      : TextKindRules({.name = "classification",
                       .words = "one label of a text or of a pair of texts",
                       .form = AnswerForm::label,
                       .head = TaskKind::classification,
                       .learns_labels = true,
                       .has_class_weights = true,
                       .key = "label",
                       .shares = "probabilities",
                       .has_floor_of_words = true}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    item.gold = label_answer(record.number(record.label_text()));
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t labels) const override { return is_label_id(item.gold.label, labels); }

  void set_target(const TaskAnswer& gold, int64_t, TaskRow& row) const override {
    if (gold.label >= 0) row.label = gold.label;
  }
  bool target_fits(const TaskRow& row, int64_t labels) const override {
    return row.labels.empty() && (row.label == no_label || (row.label >= 0 && row.label < labels));
  }

  void predict(const TaskItem& item, std::span<const TaskRow>, std::span<const RowLogits> logits,
               const PredictionSetting&, ItemPrediction& made) const override {
    predict_label(mean_of_rows(logits), item.gold, made);
  }
  std::string text_of(const TaskAnswer& answer, const TaskLabels& labels) const override {
    return shown_label(labels, answer.label);
  }
  nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item,
                                 const TaskLabels& labels) const override {
    const auto& p = made.prediction;
    return {{"item", item.id},
            {"label", shown_label(labels, p.answer.label)},
            {"probabilities", shares_by_label(p, labels)}};
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames& labels,
                         const std::string& where) const override {
    return label_answer(labels.of(value, where));
  }

  void check_prediction(const TaskItem& item, const TaskPrediction& prediction, int64_t labels) const override {
    require_gold(item, form, "label");
    check_label(prediction.answer.label, labels, item.id);
    check_probabilities(prediction, labels, item.id);
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const override {
    const auto have_groups = std::ranges::none_of(scored.items, [](const auto* item) { return item->group.empty(); });
    std::vector<TaskScorerMaker> makers{class_scorer};
    if (have_groups && scored.labels->size() == 2) makers.push_back(question_scorer);
    if (have_probabilities(scored)) makers.push_back(area_scorer);
    return makers;
  }
  void add_tables(const ScoredItems& scored, TaskFigures& figures) const override {
    add_label_tables(label_pairs(scored), *scored.labels, figures);
  }
  TaskAnswer constant_answer(const std::vector<TaskItem>& items, const TaskLabels&) const override {
    return label_answer(most_frequent(gold_counts(items)));
  }

  void write_target(const TaskRow& row, const TaskItem&, nlohmann::ordered_json& to) const override {
    to["label"] = label_or_null(row.label);
  }
  std::string target_text(const TaskRow& row, const TaskItem&, const TaskLabels& labels) const override {
    return row.label == no_label ? "no label" : name_of_label(labels, row.label);
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_classification() { return std::make_unique<Classification>(); }

}  // namespace cloze
