#include "tasks/figures/floors.h"

#include <algorithm>

#include "core/error.h"
#include "tasks/figures/word_regression.h"

namespace cloze {

namespace {

/// How often each label is right in a part; candidates of choice by their place.
std::vector<int64_t> gold_counts(const std::vector<TaskItem>& items) {
  std::vector<int64_t> counts;
  const auto count = [&](int64_t id) {
    if (id == unknown_label) return;
    counts.resize(std::max(counts.size(), static_cast<size_t>(id) + 1));
    ++counts[static_cast<size_t>(id)];
  };
  for (const auto& item : items) {
    if (const auto* label = std::get_if<GoldLabel>(&item.gold)) count(label->id);
    if (const auto* labels = std::get_if<GoldLabels>(&item.gold))
      for (const auto id : labels->ids) count(id);
  }
  return counts;
}

double mean_of_gold(const std::vector<TaskItem>& items) {
  double sum = 0, count = 0;
  for (const auto& item : items)
    if (const auto* gold = std::get_if<GoldValue>(&item.gold)) {
      sum += gold->value;
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

int64_t most_frequent(const std::vector<int64_t>& counts) {
  return counts.empty() ? unknown_label : std::ranges::max_element(counts) - counts.begin();
}

/// The tag O, of tasks without it the most frequent one.
int64_t outside_tag(const std::vector<int64_t>& counts, const TaskLabels& labels) {
  const auto at = std::ranges::find(labels.names, "O");
  return at != labels.names.end() ? at - labels.names.begin() : most_frequent(counts);
}

std::string both_texts(const TaskItem& item) { return item.is_pair ? item.text + " " + item.second : item.text; }

std::vector<TaskPrediction> word_predictions(const std::vector<TaskItem>& train, const std::vector<TaskItem>& items,
                                             const TaskLabels& labels) {
  std::vector<std::string> texts;
  std::vector<int64_t> gold;
  for (const auto& item : train)
    if (const auto* label = std::get_if<GoldLabel>(&item.gold); label && label->id != unknown_label) {
      texts.push_back(both_texts(item));
      gold.push_back(label->id);
    }
  const WordRegression regression(texts, gold, labels.size());
  std::vector<TaskPrediction> predictions;
  for (const auto& item : items) {
    auto p = regression.probabilities(both_texts(item));
    const auto label = std::ranges::max_element(p) - p.begin();
    predictions.push_back({.id = item.id, .label = label, .probabilities = std::move(p)});
  }
  return predictions;
}

TaskPrediction constant_prediction(TaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels) {
  TaskPrediction prediction;
  switch (kind) {
    case TaskKind::classification:
    case TaskKind::choice:
      prediction.label = most_frequent(gold_counts(items));
      break;
    case TaskKind::multilabel: {
      const auto counts = gold_counts(items);
      for (size_t id = 0; id < counts.size(); ++id)
        if (2 * counts[id] > std::ssize(items)) prediction.labels.push_back(static_cast<int64_t>(id));
      break;
    }
    case TaskKind::regression:
      prediction.value = mean_of_gold(items);
      break;
    case TaskKind::tagging:
      prediction.label = outside_tag(gold_counts(items), labels);
      break;
    case TaskKind::spans:
      break;
  }
  return prediction;
}

}  // namespace

std::string name_of_floor(TaskKind kind, Floor floor) {
  if (floor == Floor::words) return "words";
  switch (kind) {
    case TaskKind::regression:
      return "mean";
    case TaskKind::tagging:
      return "all O";
    case TaskKind::spans:
      return "no answer";
    default:
      return "majority";
  }
}

std::vector<TaskPrediction> constant_predictions(TaskKind kind, const std::vector<TaskItem>& items,
                                                 const TaskLabels& labels) {
  std::vector<TaskPrediction> predictions(items.size(), constant_prediction(kind, items, labels));
  for (size_t i = 0; i < items.size(); ++i) {
    predictions[i].id = items[i].id;
    if (kind == TaskKind::tagging) predictions[i].labels.assign(items[i].words.size(), predictions[i].label);
  }
  return predictions;
}

std::vector<TaskPrediction> floor_predictions(TaskKind kind, Floor floor, const std::vector<TaskItem>& train,
                                              const std::vector<TaskItem>& items, const TaskLabels& labels) {
  if (floor == Floor::words) {
    require<ConfigError>(kind == TaskKind::classification, "a floor of words is one of classification; of ",
                         name_of(kind), " there is the constant one, which stands beside every figure");
    return word_predictions(train, items, labels);
  }
  return constant_predictions(kind, items, labels);
}

void add_floor(TaskKind kind, Floor floor, const std::vector<TaskPrediction>& predictions,
               const std::vector<TaskItem>& items, const TaskLabels& labels, const MetricOptions& options,
               TaskFigures& figures) {
  auto of_floor = options;  // which has decided what has no answer
  of_floor.no_answer_threshold.reset();
  of_floor.has_no_answer_scores = false;
  const auto values = values_of(kind, items, labels, predictions, of_floor);
  for (auto& figure : figures.figures) {
    const auto at = std::ranges::find(values, figure.metric, &Figure::metric);
    figure.floors.emplace_back(name_of_floor(kind, floor), at == values.end() ? std::nullopt : at->value);
  }
}

void add_floor(TaskKind kind, Floor floor, const std::vector<TaskItem>& train, const std::vector<TaskItem>& items,
               const TaskLabels& labels, const MetricOptions& options, TaskFigures& figures) {
  add_floor(kind, floor, floor_predictions(kind, floor, train, items, labels), items, labels, options, figures);
}

}  // namespace cloze
