// A tag for each word.
#include <algorithm>

#include "core/contains.h"
#include "core/spelling.h"
#include "core/text.h"
#include "tasks/scores/label_names.h"
#include "tasks/inspect_task.h"
#include "tasks/kinds/answers.h"
#include "tasks/kinds/tagging/entities.h"
#include "tasks/kinds/tagging/rows.h"
#include "tasks/scores/task_scorer.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer word_scorer(const ScoredItems& scored);
TaskScorer entity_scorer(const ScoredItems& scored);
void add_tag_tables(const ScoredItems& scored, TaskScores& scores);

namespace {

struct Tagging final : TaskKindRules {
  Tagging()
      : TaskKindRules({.name = "tagging",
                       .form = AnswerForm::labels,
                       .head = "tagging",
                       .files = {.formats = {TaskFormat::conll, TaskFormat::conllu},
                                 .lacking = "words; write conll, conllu or jsonl",
                                 .lacking_here = "words with tags; write `format: conll`, or lists in JSON lines",
                                 .keys = {.text = "tokens", .label = "tags"}},
                       .has_words = true,
                       .learns_labels = true,
                       .has_scheme = true,
                       .has_class_weights = true,
                       .label_unit = "word",
                       .reads_windows = true,
                       .gold_name = "tags",
                       .key = "tags",
                       .floor_name = "one tag"}) {}

  void read_texts(const TaskRecord& record, TaskItem& item) const override {
    const auto* words = record.words();
    if (words == nullptr)
      fail<DataError>(record.where(), ": '", shortened(record.text_name()), "' is no list of words; tagging needs one");
    item.words = *words;
    item.second = record.second();
    item.is_pair = record.is_pair();
  }
  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    const auto& tags = record.label_cell();
    const auto count = item.words.size();
    if (!tags.is_list || !tags.starts.empty())
      fail<DataError>(record.where(), ": '", shortened(record.label_name(0)),
                      "' is no list of tags; tagging needs one");
    if (tags.texts.size() != count)
      fail<DataError>(record.where(), ": has ", counted(count, "word"), " and ", counted(tags.texts.size(), "tag"),
                      "; give each word one");
    record.check_tags(tags.texts, record.where());
    std::vector<int64_t> numbers;
    for (const auto& tag : tags.texts) numbers.push_back(record.number(tag));
    item.gold = labels_answer(std::move(numbers));
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t labels) const override {
    return item.gold.labels.size() == item.words.size() && TaskKindRules::gold_fits(item, labels);
  }

  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override {
    add_word_rows(maker, item, number, rows, counts);
  }
  bool target_fits(const TaskRow& row, int64_t labels) const override {
    const auto is_tag = [&](int64_t id) { return id == no_label || (id >= 0 && id < labels); };
    const auto& tags = row.gold.labels;
    return tags.empty() || (tags.size() == row.ids.size() && std::ranges::all_of(tags, is_tag));
  }

  void predict(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
               const PredictionSetting& setting, ItemPrediction& made) const override {
    std::vector<std::vector<int64_t>> tags;
    double sum = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto columns = static_cast<size_t>(logits[r].columns);
      auto& of_row = tags.emplace_back();
      for (size_t t = 0; t < rows[r].ids.size(); ++t) {
        const auto of_token = std::span(logits[r].values).subspan(t * columns, columns);
        of_row.push_back(index_of_most(of_token));
        const auto word = t < rows[r].words.size() ? rows[r].words[t] : -1;
        if (!item.gold.is_known() || word < 0) continue;
        const auto id = item.gold.labels.at(static_cast<size_t>(word));
        if (id < 0 || id >= logits[r].columns) continue;
        sum += log_sum_exp(of_token) - of_token[static_cast<size_t>(id)];
        ++made.count;
      }
    }
    made.prediction.answer = labels_answer(tags_of_words(std::ssize(item.words), rows, tags, setting.missing_tag));
    if (made.count > 0) made.loss = sum / static_cast<double>(made.count);
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames& labels,
                         const std::string& where) const override {
    auto answer = TaskKindRules::read_answer(value, labels, where);
    for (size_t w = 0; w < answer.labels.size(); ++w)
      if (answer.labels[w] == unknown_label)
        answer.unknown.push_back(value[w].is_string() ? value[w].get<std::string>() : "O");
    return answer;
  }
  std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const override {
    if (are_entity_tags(scored.labels->names)) return {entity_scorer, word_scorer};
    return {word_scorer};
  }
  void add_tables(const ScoredItems& scored, TaskScores& scores) const override { add_tag_tables(scored, scores); }
  /// F1 of tags that mark phrases.
  std::string usual_metric(const std::vector<std::string>& scores) const override {
    return contains(scores, "f1") ? "f1" : scores.at(0);
  }
  /// The tag O, of tasks without it the most frequent one.
  TaskAnswer constant_answer(const std::vector<TaskItem>& items, const TaskLabels& labels) const override {
    const auto outside = std::ranges::find(labels.names, "O") - labels.names.begin();
    return labels_answer({outside < labels.size() ? outside : most_frequent(gold_counts(items))});
  }

  void write_counts(const InspectedSplit& split, nlohmann::ordered_json& to) const override {
    to["words"] = split.rows.words;
    to["words_without_token"] = split.rows.words_without_token;
    to["cut_words"] = split.rows.cut_words;
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_tagging() { return std::make_unique<Tagging>(); }

}  // namespace cloze
