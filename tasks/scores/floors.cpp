#include "tasks/scores/floors.h"

#include <algorithm>

#include "core/error.h"
#include "tasks/scores/word_regression.h"

namespace cloze {

namespace {

std::string both_texts(const TaskItem& item) { return item.is_pair ? item.text + " " + item.second : item.text; }

std::vector<TaskPrediction> word_predictions(const std::vector<TaskItem>& train, const std::vector<TaskItem>& items,
                                             const TaskLabels& labels) {
  std::vector<std::string> texts;
  std::vector<int64_t> gold;
  for (const auto& item : train)
    if (item.gold.is_known() && item.gold.label != unknown_label) {
      texts.push_back(both_texts(item));
      gold.push_back(item.gold.label);
    }
  const WordRegression regression(texts, gold, labels.size());
  std::vector<TaskPrediction> predictions;
  for (const auto& item : items) {
    auto p = regression.probabilities(both_texts(item));
    const auto label = std::ranges::max_element(p) - p.begin();
    predictions.push_back({.id = item.id, .answer = label_answer(label), .probabilities = std::move(p)});
  }
  return predictions;
}

}  // namespace

std::string name_of_floor(AnyTaskKind kind, Floor floor) { return floor == Floor::words ? "words" : kind->floor_name; }

std::vector<TaskPrediction> constant_predictions(AnyTaskKind kind, const std::vector<TaskItem>& items,
                                                 const TaskLabels& labels) {
  auto answers = kind->constant_answers(items, labels);
  std::vector<TaskPrediction> predictions;
  for (size_t i = 0; i < items.size(); ++i) predictions.push_back({.id = items[i].id, .answer = std::move(answers[i])});
  return predictions;
}

std::vector<TaskPrediction> floor_predictions(AnyTaskKind kind, Floor floor, const std::vector<TaskItem>& train,
                                              const std::vector<TaskItem>& items, const TaskLabels& labels) {
  if (floor == Floor::words) {
    require<ConfigError>(kind->has_floor_of_words, "a floor of words is one of classification; of ", name_of(kind),
                         " there is the constant one, which stands beside every figure");
    return word_predictions(train, items, labels);
  }
  return constant_predictions(kind, items, labels);
}

void add_floor(AnyTaskKind kind, Floor floor, const std::vector<TaskPrediction>& predictions,
               const std::vector<TaskItem>& items, const TaskLabels& labels, const MetricOptions& options,
               TaskScores& scores) {
  auto of_floor = options;  // which has decided what has no answer
  of_floor.no_answer_threshold.reset();
  of_floor.has_no_answer_scores = false;
  const auto values = values_of(kind, items, labels, predictions, of_floor);
  for (auto& score : scores.scores) {
    const auto at = std::ranges::find(values, score.metric, &Score::metric);
    score.floors.emplace_back(name_of_floor(kind, floor), at == values.end() ? std::nan("") : at->value);
  }
}

void add_floor(AnyTaskKind kind, Floor floor, const std::vector<TaskItem>& train, const std::vector<TaskItem>& items,
               const TaskLabels& labels, const MetricOptions& options, TaskScores& scores) {
  add_floor(kind, floor, floor_predictions(kind, floor, train, items, labels), items, labels, options, scores);
}

}  // namespace cloze
