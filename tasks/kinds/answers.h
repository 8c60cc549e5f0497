#pragma once
// What several kinds of tasks share: rows of whole texts, logits, labels and their names.
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "tasks/figures/item_prediction.h"
#include "tasks/kinds/kinds.h"
#include "tasks/rows/rows.h"

namespace cloze {

/// A kind whose rows are whole texts, with one answer for all windows of an item.
struct TextKindRules : TaskKindRules {
  using TaskKindRules::TaskKindRules;
  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override;
  /// Sets what is right for a row; `gold` is known.
  virtual void set_target(const TaskAnswer& gold, int64_t num_labels, TaskRow& row) const = 0;
};

// Logits.
double log_sum_exp(std::span<const double> logits);
int64_t index_of_most(std::span<const double> values);
/// The mean of those of an item's rows.
std::vector<double> mean_of_rows(std::span<const RowLogits> logits);
/// The likeliest label or candidate, with the probabilities and the loss.
void predict_label(const std::vector<double>& logits, const TaskAnswer& gold, ItemPrediction& made);

// Labels by id.
inline bool is_label_id(int64_t id, int64_t labels) { return id >= unknown_label && id < labels; }
/// The name of a label, or `(unknown)`.
const std::string& shown_label(const TaskLabels& labels, int64_t id);
std::vector<std::string> shown_labels(const TaskLabels& labels, const std::vector<int64_t>& ids);
/// These with `between` between them.
std::string joined_labels(const TaskLabels& labels, const std::vector<int64_t>& ids, const char* between);
/// An object of probabilities by label.
nlohmann::ordered_json shares_by_label(const TaskPrediction& prediction, const TaskLabels& labels);
/// The name of a label of a row for people, its number where it has none.
std::string name_of_label(const TaskLabels& labels, int64_t id);
/// null for no_label.
nlohmann::ordered_json label_or_null(int64_t label);

// Items that are scored.
/// Throws DataError for an item whose gold is unknown or of another form; `what` names it.
void require_gold(const TaskItem& item, AnswerForm form, const char* what);
void check_label(int64_t id, int64_t labels, const std::string& item);
void check_probabilities(const TaskPrediction& prediction, int64_t labels, const std::string& item);
bool have_probabilities(const ScoredItems& scored);

/// How often each label is right in a part; candidates of choice by their place.
std::vector<int64_t> gold_counts(const std::vector<TaskItem>& items);
int64_t most_frequent(const std::vector<int64_t>& counts);

}  // namespace cloze
