// One label of a text or of a pair of texts.
#include <algorithm>

#include "tasks/scores/label_scores.h"
#include "tasks/kinds/answers.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer class_scorer(const ScoredItems& scored);
TaskScorer question_scorer(const ScoredItems& scored);

namespace {

struct Classification final : TaskKindRules {
  Classification()
      : TaskKindRules({.name = "classification",
                       .form = AnswerForm::label,
                       .head = "classification",
                       .learns_labels = true,
                       .has_class_weights = true,
                       .key = "label",
                       .shares = "probabilities",
                       .has_floor_of_words = true}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    const auto& label = record.label_text();
    record.refuse_python_list(label, "write one label, or `kind: multilabel` with `label_separator` between several");
    item.gold = label_answer(record.number(label));
    return true;
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const override {
    const auto have_groups = std::ranges::none_of(scored.items, [](const auto* item) { return item->group.empty(); });
    std::vector<TaskScorerMaker> makers{class_scorer};
    if (have_groups && scored.labels->size() == 2) makers.push_back(question_scorer);
    if (have_probabilities(scored)) makers.insert(makers.end(), {area_scorer, calibration_scorer});
    return makers;
  }
  void add_tables(const ScoredItems& scored, TaskScores& scores) const override {
    add_label_tables(label_pairs(scored), *scored.labels, scores);
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_classification() { return std::make_unique<Classification>(); }

}  // namespace cloze
