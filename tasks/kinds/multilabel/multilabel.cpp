// Any number of labels of a text or of a pair of texts.
#include <algorithm>
#include <cmath>

#include "core/contains.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/text_lines.h"
#include "tasks/scores/label_names.h"
#include "tasks/scores/label_scores.h"
#include "tasks/kinds/answers.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer multilabel_scorer(const ScoredItems& scored);
void add_multilabel_table(const ScoredItems& scored, TaskScores& scores);

namespace {

bool are_flags(const std::vector<std::string>& list) {
  return std::ranges::all_of(list, [](const std::string& one) { return flag_in(one) >= 0; });
}

/// The labels of columns that say by 0 and 1 whether an item has theirs.
std::vector<int64_t> labels_of_columns(TaskRecord& record) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < record.label_columns(); ++i) {
    const auto& name = record.label_name(i);
    const int flag = flag_in(record.label_text(i));
    if (flag < 0)
      fail<DataError>(record.where(), ": '", shortened(name), "' is '", shortened(record.label_text(i)),
                      "'; a column of `data.label`, of which there are several, has 1 where an item has the label, "
                      "else 0");
    if (flag == 1) numbers.push_back(record.pool.number(name));
  }
  return numbers;
}

/// Whether parts are 0 or 1 in the place of each label of `labels`.
bool has_places(const TaskRecord& record, const std::vector<std::string>& list) {
  const bool are_labels =
      list.size() == 2 && std::ranges::all_of(list, [&](const auto& one) { return record.is_given(one); });
  return list.size() > 1 && list.size() == record.config.labels.items.size() && !are_labels && are_flags(list);
}

std::vector<int64_t> labels_of_places(TaskRecord& record, const std::vector<std::string>& flags) {
  std::vector<int64_t> numbers;
  for (size_t place = 0; place < flags.size(); ++place)
    if (flag_in(flags[place]) == 1) numbers.push_back(record.pool.number(record.config.labels.items[place].first));
  return numbers;
}

/// Whether a text is a list of numbers as Python prints it.
bool is_list_of_numbers(std::string_view text) {
  const bool is_list = text.starts_with('[') && text.ends_with(']');
  return text == "set()" || (is_list && text.find_first_not_of("[]0123456789-., ") == text.npos);
}

/// Whether a text is numbers 0 and 1 with spaces between them.
bool are_flags_with_spaces(std::string_view text) {
  return text.find(' ') != text.npos && text.find_first_not_of("01 ") == text.npos;
}

/// Whether brackets stand around all of a text, between whose parts are separators: `[a, b]`, `('a',)`.
bool is_in_brackets(std::string_view text, std::string_view between) {
  if (text.starts_with("array(")) return text.ends_with(')');
  const auto opening = std::string_view("[({").find(text.empty() ? ' ' : text[0]);
  if (opening == text.npos || text.back() != "])}"[opening]) return false;
  const auto end = text.find(between);
  return end != text.npos && text.substr(0, end).find(text.back()) == text.npos;
}

/// The parts of a cell of text, between separators.
std::vector<std::string> parts_of_text(const TaskRecord& record, const std::string& text) {
  std::vector<std::string> parts;
  const auto& between = record.config.data.label_separator;
  record.refuse_python_list(text, "write the labels with `label_separator` between them",
                            is_list_of_numbers(text) || is_in_brackets(text, between));
  if (are_flags_with_spaces(text) && !record.is_given(text) && text.find(between) == text.npos)
    fail<DataError>(record.where(), ": '", shortened(text), "' has several numbers 0 and 1, and `label_separator` is '",
                    between, "'; write `label_separator: \" \"`, and name the labels in this order with `labels`");
  if (is_blank(text)) return parts;
  for (const auto& part : separated(text, between)) parts.emplace_back(without_white_space_around(part));
  return parts;
}

std::vector<int64_t> labels_of_cell(TaskRecord& record) {
  std::vector<int64_t> numbers;
  const auto& cell = record.label_cell();
  const auto parts = cell.is_list ? cell.texts : parts_of_text(record, cell.text);
  if (has_places(record, parts))
    numbers = labels_of_places(record, parts);
  else
    for (const auto& label : parts) numbers.push_back(record.number(label));
  std::sort(numbers.begin(), numbers.end());
  const auto twice = std::adjacent_find(numbers.begin(), numbers.end());
  if (twice != numbers.end() && are_flags(parts))
    fail<DataError>(record.where(), ": has ", parts.size(),
                    " numbers 0 and 1, one in the place of each label; name so many, in this order, with `labels`: "
                    "{FIRST: FIRST, SECOND: SECOND}");
  if (twice != numbers.end())
    fail<DataError>(record.where(), ": has the label '", shortened(record.pool.text(*twice)),
                    "' twice; remove one of them");
  return numbers;
}

struct Multilabel final : TaskKindRules {
  Multilabel()
      : TaskKindRules({.name = "multilabel",
                       .form = AnswerForm::labels,
                       .head = "multilabel",
                       .learns_labels = true,
                       .has_sets = true,
                       .gold_name = "labels",
                       .key = "labels",
                       .shares = "probabilities"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    item.gold = labels_answer(record.label_columns() > 1 ? labels_of_columns(record) : labels_of_cell(record));
    return true;
  }
  /// As usual, or none has a label, and too few of the training part have none.
  std::string unjudged(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train) const override {
    const auto has_none = [](const TaskItem& item) { return item.gold.is_known() && item.gold.labels.empty(); };
    const auto reason = lacking_beyond_chance(items, train, has_none);
    return reason.empty() ? TaskKindRules::unjudged(items, train) : "no item has a label" + reason;
  }
  bool target_fits(const TaskRow& row, int64_t labels) const override {
    const auto is_flag = [](int64_t has) { return has == 0 || has == 1; };
    return row.gold.labels.empty() ||
           (std::ssize(row.gold.labels) == labels && std::ranges::all_of(row.gold.labels, is_flag));
  }

  void predict(const TaskItem& item, std::span<const TaskRow>, std::span<const RowLogits> of_rows,
               const PredictionSetting&, ItemPrediction& made) const override {
    const auto logits = mean_of_rows(of_rows);
    made.prediction.answer = labels_answer({});
    for (size_t id = 0; id < logits.size(); ++id) {
      if (logits[id] > 0) made.prediction.answer.labels.push_back(static_cast<int64_t>(id));
      made.prediction.probabilities.push_back(1 / (1 + std::exp(-logits[id])));
    }
    if (!item.gold.is_known()) return;
    made.loss = 0;
    made.count = std::ssize(logits);
    for (size_t id = 0; id < logits.size(); ++id) {
      const double margin = contains(item.gold.labels, static_cast<int64_t>(id)) ? -logits[id] : logits[id];
      const double loss = margin > 0 ? margin + std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin));
      made.loss += loss / static_cast<double>(logits.size());
    }
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames& labels,
                         const std::string& where) const override {
    auto answer = TaskKindRules::read_answer(value, labels, where);
    auto& ids = answer.labels;
    std::ranges::sort(ids);
    if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end() && *twice != unknown_label)
      fail<DataError>(where, ": has the label '", labels.labels.names[static_cast<size_t>(*twice)],
                      "' twice; a set of labels has each once");
    return answer;
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const override {
    if (have_probabilities(scored)) return {multilabel_scorer, area_scorer};
    return {multilabel_scorer};
  }
  void add_tables(const ScoredItems& scored, TaskScores& scores) const override {
    add_multilabel_table(scored, scores);
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_multilabel() { return std::make_unique<Multilabel>(); }

}  // namespace cloze
