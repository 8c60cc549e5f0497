#pragma once
// What several kinds of tasks share: logits, and labels by id.
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "tasks/scores/item_prediction.h"
#include "tasks/kinds/kinds.h"
#include "tasks/rows/rows.h"

namespace cloze {

double log_sum_exp(std::span<const double> logits);
int64_t index_of_most(std::span<const double> values);
/// The mean of those of an item's rows.
std::vector<double> mean_of_rows(std::span<const RowLogits> logits);
/// The name of a label of a row for people, its number where it has none.
std::string name_of_label(const TaskLabels& labels, int64_t id);
/// null for no_label.
nlohmann::ordered_json label_or_null(int64_t label);

bool have_probabilities(const ScoredItems& scored);
/// How often each label is right in a part; candidates of choice by their place.
std::vector<int64_t> gold_counts(const std::vector<TaskItem>& items);
int64_t most_frequent(const std::vector<int64_t>& counts);

/// How many items have nothing that is right, of a part where all of them have nothing, as is told: `, of 40, and of
/// the training part 1 of 100 have none`. Empty where some have, and where a draw of so many items from the training
/// part may well be such; that is never so where it has none without.
std::string lacking_beyond_chance(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train,
                                  const std::function<bool(const TaskItem&)>& lacks);

}  // namespace cloze
