#pragma once
// Predictions that need no network: what scores are measured against.
#include <array>
#include <string>
#include <vector>

#include "tasks/scores/scores.h"

namespace cloze {

enum class Floor { constant, words };
constexpr auto choices(Floor) {
  using enum Floor;
  return std::array{
      Choice{constant, "constant",
             "the majority class, the mean, one tag, no answer: what the part itself has most; the lead of a source"},
      Choice{words, "words", "a logistic regression on the words and pairs of words of the training part"}};
}

/// What a floor is called beside figures: `majority`, `mean`, `one tag`, `no answer`, `lead`, `words`.
std::string name_of_floor(AnyTaskKind kind, Floor floor);

/// The one prediction for all items of a part that is right most often: the most frequent label, of equally frequent
/// ones the first; the mean; O; no answer. Without a known label none of them. Of texts the lead of each source.
std::vector<TaskPrediction> constant_predictions(AnyTaskKind kind, const std::vector<TaskItem>& items,
                                                 const TaskLabels& labels);

/// Predictions for items: `constant`, by what these items have most, `words` by what the training part tells.
///
/// Throws ConfigError for `words` of another kind than classification; DataError for a training part without labels.
std::vector<TaskPrediction> floor_predictions(AnyTaskKind kind, Floor floor, const std::vector<TaskItem>& train,
                                              const std::vector<TaskItem>& items, const TaskLabels& labels);

/// Adds the values of a floor's predictions to each score.
void add_floor(AnyTaskKind kind, Floor floor, const std::vector<TaskPrediction>& predictions,
               const std::vector<TaskItem>& items, const TaskLabels& labels, const MetricOptions& options,
               TaskScores& scores);

/// Makes these predictions too.
void add_floor(AnyTaskKind kind, Floor floor, const std::vector<TaskItem>& train, const std::vector<TaskItem>& items,
               const TaskLabels& labels, const MetricOptions& options, TaskScores& scores);

}  // namespace cloze
