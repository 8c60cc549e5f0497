#include "tasks/kinds/answers.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "tasks/figures/task_scorer.h"

namespace cloze {

void TextKindRules::add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number,
                             std::vector<TaskRow>& rows, RowCounts& counts) const {
  const auto set = [&](TaskRow& row) {
    if (item.gold.is_known()) set_target(item.gold, maker.options().num_labels, row);
  };
  maker.add_text(item, number, set, rows, counts);
}

double log_sum_exp(std::span<const double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

int64_t index_of_most(std::span<const double> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

std::vector<double> mean_of_rows(std::span<const RowLogits> logits) {
  std::vector<std::vector<double>> all;
  for (const auto& row : logits) all.push_back(row.values);
  return mean_of_windows(all);
}

void predict_label(const std::vector<double>& logits, const TaskAnswer& gold, ItemPrediction& made) {
  const double all = log_sum_exp(logits);
  made.prediction.answer = label_answer(index_of_most(logits));
  for (const double logit : logits) made.prediction.probabilities.push_back(std::exp(logit - all));
  const bool is_known = gold.is_known() && gold.label >= 0 && gold.label < std::ssize(logits);
  if (!is_known) return;
  made.loss = all - logits[static_cast<size_t>(gold.label)];
  made.count = 1;
}

const std::string& shown_label(const TaskLabels& labels, int64_t id) {
  static const std::string unknown = "(unknown)";
  return id >= 0 && id < labels.size() ? labels.names[static_cast<size_t>(id)] : unknown;
}

std::vector<std::string> shown_labels(const TaskLabels& labels, const std::vector<int64_t>& ids) {
  std::vector<std::string> names;
  for (const auto id : ids) names.push_back(shown_label(labels, id));
  return names;
}

std::string joined_labels(const TaskLabels& labels, const std::vector<int64_t>& ids, const char* between) {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : between) + shown_label(labels, id);
  return text;
}

nlohmann::ordered_json shares_by_label(const TaskPrediction& prediction, const TaskLabels& labels) {
  auto shares = nlohmann::ordered_json::object();
  for (size_t id = 0; id < prediction.probabilities.size(); ++id)
    shares[shown_label(labels, static_cast<int64_t>(id))] = prediction.probabilities[id];
  return shares;
}

std::string name_of_label(const TaskLabels& labels, int64_t id) {
  const bool is_known = id >= 0 && id < labels.size();
  return is_known ? labels.names[static_cast<size_t>(id)] : std::to_string(id);
}

nlohmann::ordered_json label_or_null(int64_t label) {
  return label == no_label ? nlohmann::ordered_json() : nlohmann::ordered_json(label);
}

void require_gold(const TaskItem& item, AnswerForm form, const char* what) {
  require<DataError>(item.gold.form == form, "item '", item.id, "' has no ", what,
                     " to score a prediction by; leave it out, or name a part that has them");
}

void check_label(int64_t id, int64_t labels, const std::string& item) {
  require<DataError>(is_label_id(id, labels), "the prediction for item '", item, "' is label ", id,
                     ", but the task has ", labels, " labels, numbered from 0");
}

void check_probabilities(const TaskPrediction& prediction, int64_t labels, const std::string& item) {
  const auto& all = prediction.probabilities;
  require<DataError>(all.empty() || static_cast<int64_t>(all.size()) == labels, "the prediction for item '", item,
                     "' has ", all.size(), " probabilities, but there are ", labels, " labels");
  require<DataError>(std::ranges::none_of(all, [](double p) { return std::isnan(p); }), "the prediction for item '",
                     item, "' has a probability that is not a number");
}

bool have_probabilities(const ScoredItems& scored) {
  return std::ranges::none_of(scored.predictions, [](const auto* one) { return one->probabilities.empty(); });
}

std::vector<int64_t> gold_counts(const std::vector<TaskItem>& items) {
  std::vector<int64_t> counts;
  const auto count = [&](int64_t id) {
    if (id == unknown_label) return;
    counts.resize(std::max(counts.size(), static_cast<size_t>(id) + 1));
    ++counts[static_cast<size_t>(id)];
  };
  for (const auto& item : items) {
    if (item.gold.form == AnswerForm::label) count(item.gold.label);
    for (const auto id : item.gold.labels) count(id);
  }
  return counts;
}

int64_t most_frequent(const std::vector<int64_t>& counts) {
  return counts.empty() ? unknown_label : std::ranges::max_element(counts) - counts.begin();
}

}  // namespace cloze
