#include "tasks/kinds/answers.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "tasks/scores/label_names.h"
#include "tasks/scores/task_scorer.h"
#include "tasks/task_record.h"

namespace cloze {

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

std::string name_of_label(const TaskLabels& labels, int64_t id) {
  const bool is_known = id >= 0 && id < labels.size();
  return is_known ? labels.names[static_cast<size_t>(id)] : std::to_string(id);
}

nlohmann::ordered_json label_or_null(int64_t label) {
  return label < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(label);
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

// What is usual by the form of answers.

namespace {

bool is_label_id(int64_t id, int64_t labels) { return id >= unknown_label && id < labels; }

const std::string& shown_label(const TaskLabels& labels, int64_t id) {
  static const std::string unknown = "(unknown)";
  return id >= 0 && id < labels.size() ? labels.names[static_cast<size_t>(id)] : unknown;
}

std::vector<std::string> shown_labels(const TaskLabels& labels, const std::vector<int64_t>& ids) {
  std::vector<std::string> names;
  for (const auto id : ids) names.push_back(shown_label(labels, id));
  return names;
}

/// The ids of an answer.
std::vector<int64_t> ids_of(const TaskAnswer& answer, AnswerForm form) {
  return form == AnswerForm::label ? std::vector{answer.label} : answer.labels;
}

/// Sets what is right for a row of a whole text.
void set_target(const TaskAnswer& gold, int64_t num_labels, TaskRow& row) {
  row.gold = gold;
  if (gold.form != AnswerForm::labels) return;
  row.gold.labels.assign(static_cast<size_t>(num_labels), 0);
  for (const auto id : gold.labels)
    if (id >= 0 && id < num_labels) row.gold.labels[static_cast<size_t>(id)] = 1;
}

void check_probabilities(const TaskPrediction& prediction, int64_t labels, const std::string& item) {
  const auto& all = prediction.probabilities;
  require<DataError>(all.empty() || std::ssize(all) == labels, "the prediction for item '", item, "' has ", all.size(),
                     " probabilities, but there are ", labels, " labels");
  require<DataError>(std::ranges::none_of(all, [](double p) { return std::isnan(p); }), "the prediction for item '",
                     item, "' has a probability that is not a number");
}

double mean_of_golds(const std::vector<TaskItem>& items) {
  double sum = 0, count = 0;
  for (const auto& item : items) {
    if (!item.gold.is_known()) continue;
    sum += item.gold.value;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

std::string lacking_beyond_chance(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train,
                                  const std::function<bool(const TaskItem&)>& lacks) {
  constexpr double impossible = 1e-6;
  if (items.empty() || train.empty() || !std::ranges::all_of(items, lacks)) return "";
  const auto without = std::ranges::count_if(train, lacks);
  const double rate = static_cast<double>(without + 1) / static_cast<double>(train.size() + 2);  // Laplace's estimate
  if (without > 0 && std::pow(rate, static_cast<double>(items.size())) > impossible) return "";
  return concat(", of ", items.size(), ", and of the training part ", without, " of ", train.size(), " have none");
}

void TaskKindRules::read_texts(const TaskRecord& record, TaskItem& item) const {
  item.text = record.text();
  item.second = record.second();
  item.is_pair = record.is_pair();
}

bool TaskKindRules::gold_fits(const TaskItem& item, int64_t labels) const {
  const bool has_ids = form == AnswerForm::label || form == AnswerForm::labels;
  return !has_ids || std::ranges::all_of(ids_of(item.gold, form), [&](int64_t id) { return is_label_id(id, labels); });
}

std::string TaskKindRules::unjudged(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train) const {
  const auto trained = gold_counts(train);
  const auto is_unknown = [&](int64_t id) {
    const bool is_trained = train.empty() || (id < std::ssize(trained) && trained[static_cast<size_t>(id)] > 0);
    return id == unknown_label || !is_trained;
  };
  int64_t unknown = 0, all = 0;
  for (const auto& item : items) {
    if (!learns_labels || !item.gold.is_known()) continue;
    for (const auto id : ids_of(item.gold, form)) {
      unknown += is_unknown(id);
      ++all;
    }
  }
  return 2 * unknown > all ? concat(unknown, " of ", all, " labels are none that the training part has") : "";
}

void TaskKindRules::predict(const TaskItem& item, std::span<const TaskRow>, std::span<const RowLogits> logits,
                            const PredictionSetting&, ItemPrediction& made) const {
  std::vector<double> scores;
  for (const auto& row : logits)
    if (rows_compete) scores.push_back(row.values.at(0));
  if (!rows_compete) scores = mean_of_rows(logits);
  const double all = log_sum_exp(scores);
  made.prediction.answer = label_answer(index_of_most(scores));
  for (const double score : scores) made.prediction.probabilities.push_back(std::exp(score - all));
  const auto& gold = item.gold;
  if (!gold.is_known() || gold.label < 0 || gold.label >= std::ssize(scores)) return;
  made.loss = all - scores[static_cast<size_t>(gold.label)];
  made.count = 1;
}

void TaskKindRules::add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number,
                             std::vector<TaskRow>& rows, RowCounts& counts) const {
  const auto set = [&](TaskRow& row) { set_target(item.gold, maker.options().num_labels, row); };
  maker.add_text(item, number, set, rows, counts);
}

bool TaskKindRules::target_fits(const TaskRow& row, int64_t labels) const {
  return row.gold.labels.empty() && (!learns_labels || is_label_id(row.gold.label, labels));
}

std::string TaskKindRules::spelled(const TaskAnswer& answer, const TaskLabels& labels) const {
  if (form == AnswerForm::value) return digits(answer.value, 9);
  if (form == AnswerForm::spans) return answer.text();
  if (form == AnswerForm::texts) return answer.texts.empty() ? "" : answer.texts.front();
  if (form == AnswerForm::label && !learns_labels) return std::to_string(answer.label);
  std::string text;
  for (const auto& name : shown_labels(labels, ids_of(answer, form)))
    text += (text.empty() ? "" : has_words ? " " : ",") + name;
  return text;
}

nlohmann::ordered_json TaskKindRules::json_of(const ItemPrediction& made, const TaskItem& item,
                                              const TaskLabels& labels) const {
  const auto& answer = made.prediction.answer;
  const auto& probabilities = made.prediction.probabilities;
  nlohmann::ordered_json line{{"item", item.id}};
  if (form == AnswerForm::value) line[key] = answer.value;
  if (form == AnswerForm::label) line[key] = answer.label;
  if (form == AnswerForm::label && learns_labels) line[key] = shown_label(labels, answer.label);
  if (form == AnswerForm::labels) line[key] = shown_labels(labels, answer.labels);
  if (*shares == '\0') return line;
  if (!learns_labels) {
    line[shares] = probabilities;
    return line;
  }
  auto& by_label = line[shares] = nlohmann::ordered_json::object();
  for (size_t label = 0; label < probabilities.size(); ++label)
    by_label[shown_label(labels, static_cast<int64_t>(label))] = probabilities[label];
  return line;
}

TaskAnswer TaskKindRules::read_answer(const nlohmann::json& value, const LabelNames& labels,
                                      const std::string& where) const {
  if (form == AnswerForm::value) return value_answer(number_of(value, where));
  if (form == AnswerForm::label) return label_answer(labels.of(value, where));
  return labels_answer(labels.of_all(value, where));
}

nlohmann::json TaskKindRules::value_of_line(const std::string& text, const LabelNames& labels,
                                            const std::string& where) const {
  if (form == AnswerForm::value) return number_of(text, where);
  if (form != AnswerForm::labels) return text;
  const bool has_commas = !has_words && (text.find(',') != text.npos || labels.of_text(text) != unknown_label);
  return split(text, has_commas ? ',' : ' ');
}

void TaskKindRules::check_prediction(const TaskItem& item, const TaskPrediction& prediction, int64_t labels) const {
  require<DataError>(item.gold.form == form, "item '", item.id, "' has no ", gold_name,
                     " to score a prediction by; leave it out, or name a part that has them");
  const auto& answer = prediction.answer;
  const auto words = item.gold.labels.size(), tags = answer.labels.size();
  require<DataError>(!has_words || tags == words, "the prediction for item '", item.id, "' has ", tags,
                     " tags, but the item has ", words, " words; each has one tag");
  require<DataError>(std::isfinite(answer.value), "the predicted value of item '", item.id, "' is not a finite number");
  if (!learns_labels) return;
  for (const auto id : ids_of(answer, form))
    require<DataError>(is_label_id(id, labels), "the prediction for item '", item.id, "' is label ", id,
                       ", but the task has ", labels, " labels, numbered from 0");
  check_probabilities(prediction, labels, item.id);
}

std::vector<TaskScorerMaker> TaskKindRules::scorers(const ScoredItems&) const { return {accuracy_scorer}; }

bool TaskKindRules::is_right(const TaskItem& item, const TaskPrediction& prediction, const ScoredItems&) const {
  const auto &gold = item.gold, &answer = prediction.answer;
  return form == AnswerForm::label ? gold.label == answer.label && gold.label != unknown_label
                                   : gold.labels == answer.labels;
}

std::vector<TaskAnswer> TaskKindRules::constant_answers(const std::vector<TaskItem>& items,
                                                        const TaskLabels& labels) const {
  std::vector<TaskAnswer> answers(items.size(), constant_answer(items, labels));
  for (size_t i = 0; has_words && i < items.size(); ++i)
    answers[i].labels.assign(items[i].words.size(), int64_t{answers[i].labels.front()});
  return answers;
}

TaskAnswer TaskKindRules::constant_answer(const std::vector<TaskItem>& items, const TaskLabels&) const {
  if (form == AnswerForm::value) return value_answer(mean_of_golds(items));
  if (form == AnswerForm::spans) return spans_answer({});
  const auto counts = gold_counts(items);
  if (form == AnswerForm::label) return label_answer(most_frequent(counts));
  auto most = labels_answer({});
  for (size_t id = 0; id < counts.size(); ++id)
    if (2 * counts[id] > std::ssize(items)) most.labels.push_back(static_cast<int64_t>(id));
  return most;
}

void TaskKindRules::write_target(const TaskRow& row, const TaskItem& item, nlohmann::ordered_json& to) const {
  if (form == AnswerForm::labels) to["labels"] = row.gold.labels;
  if (form == AnswerForm::label) to["label"] = label_or_null(row.gold.label);
  if (form != AnswerForm::value) return;
  to["label"] = item.gold.is_known() ? nlohmann::ordered_json(item.gold.value) : nlohmann::ordered_json();
}

std::string TaskKindRules::target_text(const TaskRow& row, const TaskItem& item, const TaskLabels& labels) const {
  if (has_words) return "";
  if (rows_compete) return row.gold.label == 1 ? "right" : row.gold.label == 0 ? "wrong" : "no label";
  if (form == AnswerForm::value) return item.gold.is_known() ? shortest(item.gold.value) : "no value";
  std::vector<std::string> names;
  if (form == AnswerForm::label && row.gold.label >= 0) names.push_back(name_of_label(labels, row.gold.label));
  for (size_t id = 0; id < row.gold.labels.size(); ++id)
    if (row.gold.labels[id] == 1) names.push_back(name_of_label(labels, static_cast<int64_t>(id)));
  return names.empty() ? "no label" : listed(names);
}

}  // namespace cloze
