// One of an item's candidates.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/spelling.h"
#include "data/reading/text_lines.h"
#include "tasks/scores/label_names.h"
#include "tasks/kinds/answers.h"
#include "tasks/task_record.h"

namespace cloze {

namespace {

/// Columns of candidates, of which the last may be empty, or a list of them.
std::vector<std::string> candidates_in(const TaskRecord& record) {
  std::vector<std::string> candidates;
  const auto cells = record.candidates();
  for (const auto* cell : cells) {
    if (!cell->is_list) record.refuse_python_list(cell->text, "candidates in a table stand in columns of their own");
    if (cell->is_list)
      candidates.insert(candidates.end(), cell->texts.begin(), cell->texts.end());
    else
      candidates.push_back(cell->is_missing ? "" : cell->text);
  }
  const bool are_columns = !cells.empty() && !cells.back()->is_list;
  while (are_columns && !candidates.empty() && is_blank(candidates.back())) candidates.pop_back();
  return candidates;
}

struct ChoiceKind final : TaskKindRules {
  ChoiceKind()
      : TaskKindRules({.name = "choice",
                       .form = AnswerForm::label,
                       .head = "choice",
                       .has_candidates = true,
                       .rows_compete = true,
                       .texts = {"premise", "candidate"},
                       .gold_name = "right candidate",
                       .key = "choice",
                       .shares = "scores"}) {}

  void read_texts(const TaskRecord& record, TaskItem& item) const override {
    TaskKindRules::read_texts(record, item);
    item.candidates = candidates_in(record);
    const auto place = record.where();
    if (item.candidates.empty()) fail<DataError>(place, ": has no candidate; a choice needs two or more");
    if (item.candidates.size() < 2) fail<DataError>(place, ": has one candidate only; a choice needs two or more");
    const auto blank = std::find_if(item.candidates.begin(), item.candidates.end(), is_blank);
    if (blank != item.candidates.end())
      fail<DataError>(place, ": candidate ", blank - item.candidates.begin(),
                      " is empty; give it a text, or remove the item");
  }
  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    const auto& text = record.label_text();
    int64_t number = -1;
    if (record.names_places()) {
      number = record.place(text);
    } else {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) number = -1;
    }
    const auto count = std::ssize(item.candidates);
    if (text == "-1" && !record.names_places())
      fail<DataError>(record.where(), ": its label is '-1', the mark of an answer that is held back, and it has ",
                      "candidates 0 to ", count - 1,
                      "; name a file with answers, or leave such items out with `skip_labels: [\"-1\"]`");
    if (number < 0 || number >= count)
      fail<DataError>(record.where(), ": its label is '", shortened(text), "', and it has candidates 0 to ", count - 1,
                      "; if they are called otherwise, say so, and where one is called in two ways give both its "
                      "name: labels: {A: first, B: second, \"1\": first, \"2\": second}");
    item.gold = label_answer(number);
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t) const override {
    return item.gold.label >= 0 && item.gold.label < std::ssize(item.candidates);
  }

  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override {
    maker.add_candidates(item, number, rows, counts);
  }
  bool has_rows(const TaskItem& item, size_t rows) const override { return rows == item.candidates.size(); }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames&, const std::string& where) const override {
    require<DataError>(value.is_number_integer(), where, ": ", shown_value(value),
                       " is no number of a candidate, counted from 0");
    const bool is_too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    return label_answer(is_too_large ? unknown_label : value.get<int64_t>());
  }
  /// unknown_label for a number that no item has.
  nlohmann::json value_of_line(const std::string& text, const LabelNames&, const std::string& where) const override {
    constexpr double most = 1e9;
    const double number = number_of(text, where);
    require<DataError>(number == std::floor(number), where, ": ", text, " is no number of a candidate, counted from 0");
    return std::abs(number) < most ? static_cast<int64_t>(number) : unknown_label;
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_choice() { return std::make_unique<ChoiceKind>(); }

}  // namespace cloze
