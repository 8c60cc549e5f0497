// A text for each source: a summary, a translation, an answer.
#include <algorithm>

#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/text_lines.h"
#include "data/text_metrics.h"
#include "tasks/scores/label_names.h"
#include "tasks/scores/task_scorer.h"
#include "tasks/inspect_task.h"
#include "tasks/kinds/answers.h"
#include "tasks/kinds/generation/rows.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer text_scorer(const ScoredItems& scored);

namespace {

/// Where the words of a text begin and end, as bytes.
std::vector<std::pair<size_t, size_t>> word_places(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t at = past_white_space(text, 0); at < text.size();) {
    const auto end = std::min(text.find_first_of(" \t\n\r", at), text.size());
    places.emplace_back(at, end);
    at = past_white_space(text, end);
  }
  return places;
}

/// How many bytes all sources begin with, up to the end of a word: what a template puts before each.
size_t shared_beginning(const std::vector<TaskItem>& items) {
  if (items.size() < 2) return 0;
  const auto& first = items.front().text;
  size_t shared = first.size();
  for (const auto& item : items) {
    const auto end = std::ranges::mismatch(first, item.text).in1 - first.begin();
    shared = std::min(shared, static_cast<size_t>(end));
  }
  const auto last = first.substr(0, shared).find_last_of(" \n");
  return last == std::string::npos ? 0 : last + 1;
}

/// The words of the first reference of each item: the number that half of them have at most.
size_t median_words(const std::vector<TaskItem>& items) {
  std::vector<size_t> counts;
  for (const auto& item : items)
    if (item.gold.is_known()) counts.push_back(word_places(item.gold.texts.front()).size());
  if (counts.empty()) return 0;
  const auto middle = counts.begin() + std::ssize(counts) / 2;
  std::ranges::nth_element(counts, middle);
  return *middle;
}

/// The first words of a text.
std::string first_words(const std::string& text, size_t count) {
  const auto places = word_places(text);
  if (places.empty() || count == 0) return "";
  const auto begin = places.front().first, end = places[std::min(count, places.size()) - 1].second;
  return text.substr(begin, end - begin);
}

/// How many references each item has; 0: their number varies.
size_t number_of_references(const ScoredItems& scored) {
  const auto count = scored.items.front()->gold.texts.size();
  const bool is_same =
      std::ranges::all_of(scored.items, [&](const auto* item) { return item->gold.texts.size() == count; });
  return is_same ? count : 0;
}

struct Generation final : TaskKindRules {
  Generation()
      : TaskKindRules({.name = "generation",
                       .form = AnswerForm::texts,
                       .head = "pairs",
                       .generates = true,
                       .texts = {"source", "target"},
                       .gold_name = "reference",
                       .key = "text",
                       .is_right_or_wrong = false,
                       .floor_name = "lead",
                       .floor_words =
                           "the beginning of each source, of as many words as half of the references have at "
                           "most"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    auto references = record.label_texts();
    if (references.empty())
      fail<MissingValue>(record.where(), ": has no reference in '", shortened(record.label_name(0)), "'",
                         record.label_columns() > 1 ? " or the others" : "",
                         "; give it one, or leave such items out with --skip-bad");
    item.gold = texts_answer(std::move(references));
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t) const override { return !item.gold.texts.empty(); }

  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override {
    add_target_row(maker, item, number, rows, counts);
  }
  bool has_rows(const TaskItem&, size_t rows) const override { return rows == 1; }
  bool target_fits(const TaskRow& row, int64_t) const override {
    return row.gold.is_known() != row.target.empty() &&
           std::ranges::none_of(row.target, [](auto id) { return id < 0; });
  }

  nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item, const TaskLabels&) const override {
    nlohmann::ordered_json line{{"item", item.id}, {"text", made.prediction.answer.texts.front()}};
    if (made.count > 0) line.update({{"loss", made.loss}, {"tokens", made.count}});
    return line;
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames&, const std::string& where) const override {
    require<DataError>(value.is_string(), where, ": ", shown_value(value), " is no text");
    return texts_answer({value.get<std::string>()});
  }
  nlohmann::json value_of_line(const std::string& text, const LabelNames&, const std::string&) const override {
    return text;
  }
  std::string shown(const std::string& text) const override { return shortened(in_one_line(text)); }

  std::vector<TaskScorerMaker> scorers(const ScoredItems&) const override { return {text_scorer}; }
  std::string usual_metric(const std::vector<std::string>&) const override { return "rougeL"; }
  void add_tables(const ScoredItems& scored, TaskScores& scores) const override {
    const auto references = number_of_references(scored);
    scores.signatures = {{"bleu", bleu_signature(references)}, {"chrf", chrf_signature(references)}};
  }
  /// The beginning of each source, of as many words as the references have: a copy of a source that is no longer.
  std::vector<TaskAnswer> constant_answers(const std::vector<TaskItem>& items, const TaskLabels&) const override {
    const auto begin = shared_beginning(items), count = median_words(items);
    std::vector<TaskAnswer> answers;
    for (const auto& item : items) answers.push_back(texts_answer({first_words(item.text.substr(begin), count)}));
    return answers;
  }

  void write_target(const TaskRow& row, const TaskItem&, nlohmann::ordered_json& to) const override {
    to["labels"] = row.target;
  }
  std::string target_text(const TaskRow&, const TaskItem& item, const TaskLabels&) const override {
    return item.gold.is_known() ? "'" + visible(item.gold.texts.front()) + "'" : "no reference";
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_generation() { return std::make_unique<Generation>(); }

}  // namespace cloze
