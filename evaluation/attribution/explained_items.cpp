#include "evaluation/attribution/explained_items.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/text.h"
#include "tasks/scores/label_names.h"

namespace cloze {

namespace {

/// The id of a label of a task; none: what is predicted.
std::optional<int64_t> label_of(const JudgedTask& task, const std::string& label) {
  if (label.empty()) return std::nullopt;
  const auto& of = task.task;
  const auto kind = of.config.kind;
  if (kind->has_candidates) {
    int64_t number = -1;
    const auto* end = label.data() + label.size();
    const bool is_number = std::from_chars(label.data(), end, number).ptr == end && number >= 0;
    require<ConfigError>(is_number, "--label ", label, ": a candidate is named by its number, from 0 on");
    return number;
  }
  require<ConfigError>(of.labels.size() > 0, "--label ", label, ": the task ", of.config.task, " is of ", kind,
                       ", which has no labels; leave it out");
  const auto id = LabelNames(of.labels).of_text(label);
  require<ConfigError>(id >= 0, "--label ", label, ": the task ", of.config.task, " lacks it; its labels are ",
                       listed(of.labels.names));
  return id;
}

/// Collects the scores of one item after the other.
class Collector {
 public:
  Collector(const JudgedTask& task, const std::vector<TaskRow>& rows, std::optional<int64_t> label,
            const Tokenizer& tokenizer)
      : task_(task), kind_(task.task.config.kind), rows_(rows), label_(label), tokenizer_(tokenizer) {}

  /// The rows [begin, end) are the item's.
  void add(size_t number, const TaskItem& item, const ItemPrediction& prediction, size_t begin, size_t end) {
    number_ = number;
    item_ = &item;
    const auto& answer = prediction.prediction.answer;
    const auto& labels = task_.task.labels;
    predicted_ = kind_->spelled(answer, labels);
    gold_ = item.gold.is_known() ? kind_->spelled(item.gold, labels) : "";
    if (kind_->has_words) return add_tags(answer, begin, end);
    if (kind_->has_answers) return add_answer(prediction, begin, end);
    if (kind_->generates) return add_target(begin);
    if (kind_->has_candidates) return add_candidate(label_.value_or(answer.label), begin, end);
    const bool has_windows = end - begin > 1;
    for (auto row = begin; row < end; ++row)
      for (const auto column : columns(prediction))
        add({.row = row, .column = column, .among = among()}, name_of_column(column),
            has_windows ? concat("window ", rows_[row].window + 1) : "");
  }

  ExplainedItems made{};

 private:
  ProbabilityAmong among() const {
    if (kind_->form == AnswerForm::value) return ProbabilityAmong::none;
    return kind_->has_sets ? ProbabilityAmong::itself : ProbabilityAmong::labels;
  }

  std::string name_of_column(int64_t column) const {
    return kind_->form == AnswerForm::value ? "" : task_.task.labels.names.at(static_cast<size_t>(column));
  }

  std::vector<int64_t> columns(const ItemPrediction& made_of) const {
    const auto& [answer, probabilities] = std::tie(made_of.prediction.answer, made_of.prediction.probabilities);
    if (label_) return {*label_};
    if (kind_->form == AnswerForm::value) return {0};
    if (!kind_->has_sets) return {answer.label};
    if (!answer.labels.empty()) return answer.labels;
    return {std::ranges::max_element(probabilities) - probabilities.begin()};
  }

  void add(const RowScore& score, const std::string& label, const std::string& part) {
    auto words = words_of_row(*item_, rows_[score.row], kind_, tokenizer_);
    require<DataError>(!words.empty(), "item ", item_->id, ": has no words to explain; remove it, or write some");
    made.scores.push_back(score);
    made.explained.push_back({.item = number_,
                              .name = item_->id,
                              .part = part,
                              .label = label,
                              .predicted = predicted_,
                              .gold = gold_,
                              .words = std::move(words)});
  }

  void add_candidate(int64_t candidate, size_t begin, size_t end) {
    require<ConfigError>(begin + static_cast<size_t>(candidate) < end, "--label ", candidate, ": item ", item_->id,
                         " has the candidates 0 to ", end - begin - 1);
    add({.row = begin + static_cast<size_t>(candidate)}, std::to_string(candidate), "");
  }

  std::string name_of_tag(int64_t tag) const {
    return tag < 0 ? "" : task_.task.labels.names.at(static_cast<size_t>(tag));
  }

  void add_tags(const TaskAnswer& answer, size_t begin, size_t end) {
    for (auto row = begin; row < end; ++row)
      for (size_t at = 0; at < rows_[row].words.size(); ++at) {
        const auto word = rows_[row].words[at];
        if (word < 0) continue;
        const auto tag = answer.labels.at(static_cast<size_t>(word));
        const auto name = name_of_tag(tag);
        if (label_ ? tag != *label_ : name == "O") continue;
        predicted_ = name;
        gold_ = item_->gold.is_known() ? name_of_tag(item_->gold.labels.at(static_cast<size_t>(word))) : "";
        add({.row = row, .token = static_cast<int64_t>(at), .column = tag, .among = ProbabilityAmong::labels}, name,
            concat(item_->words[static_cast<size_t>(word)], ", word ", word + 1));
      }
  }

  void add_target(size_t row) {
    const auto& target = rows_[row].target;
    for (size_t k = 0; k < target.size(); ++k)
      if (!tokenizer_.is_special(target[k]))
        add({.row = row, .token = static_cast<int64_t>(k), .column = target[k], .among = ProbabilityAmong::labels},
            tokenizer_.readable_piece(target[k]), concat("token ", k + 1));
  }

  void add_answer(const ItemPrediction& prediction, size_t begin, size_t end) {
    const auto& spans = prediction.prediction.answer.spans;
    auto row = begin;
    auto first = rows_[begin].class_token, last = first;
    if (!spans.empty()) {
      const auto from = spans.front().begin, to = from + std::ssize(spans.front().text);
      const auto holds = [&](const TaskRow& window) {
        first = last = -1;
        for (auto at = window.second_begin; at < window.second_end; ++at) {
          const auto& bytes = window.bytes[static_cast<size_t>(at)];
          if (bytes[0] < to && bytes[1] > from) last = at;
          if (first < 0 && last >= 0) first = last;
        }
        return first >= 0 && window.bytes[static_cast<size_t>(first)][0] <= from &&
               window.bytes[static_cast<size_t>(last)][1] >= to;
      };
      while (row + 1 < end && !holds(rows_[row])) ++row;
      holds(rows_[row]);
    }
    const auto label = spans.empty() ? "(no answer)" : spans.front().text;
    add({.row = row, .token = first, .column = 0, .among = ProbabilityAmong::tokens}, label, "start");
    add({.row = row, .token = last, .column = 1, .among = ProbabilityAmong::tokens}, label, "end");
  }

  const JudgedTask& task_;
  AnyTaskKind kind_;
  const std::vector<TaskRow>& rows_;
  std::optional<int64_t> label_;
  const Tokenizer& tokenizer_;
  size_t number_ = 0;
  const TaskItem* item_ = nullptr;
  std::string predicted_{}, gold_{};
};

}  // namespace

int64_t baseline_id(BaselineToken baseline, const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special();
  const auto id = baseline == BaselineToken::pad ? special.pad : special.mask;
  const auto other = baseline == BaselineToken::pad ? special.mask : special.pad;
  const auto* remedy = baseline == BaselineToken::pad ? "--baseline mask" : "--baseline pad";
  require<ConfigError>(id >= 0, "--baseline ", name_of(baseline), ": the tokenizer of the run lacks that token; ",
                       other >= 0 ? concat("choose ", remedy) : "name a run whose tokenizer has a token of padding");
  return id;
}

TaskItem item_of_text(const std::string& text, const Task& task) {
  const auto& config = task.config;
  require<ConfigError>(!config.kind->has_candidates, "the task ", config.task, " is a choice, whose candidates a text ",
                       "does not have; name a file of items");
  TaskItem item{.id = "text"};
  if (config.kind->has_words) {
    std::istringstream words(text);
    for (std::string word; words >> word;) item.words.push_back(word);
    require<ConfigError>(!item.words.empty(), "the text is empty; write some words");
    return item;
  }
  const auto parts = separated(text, "\t");
  item.is_pair = !config.data.second.empty() || config.kind->has_answers;
  require<ConfigError>(parts.size() == (item.is_pair ? 2 : 1), "the task ", config.task, " has ",
                       item.is_pair ? "two texts" : "one text", ", and ", counted(parts.size(), "text"),
                       parts.size() == 1 ? " is given" : " are given", "; write ",
                       item.is_pair ? "a tab between them" : "no tab in it");
  for (const auto& part : parts)
    require<ConfigError>(part.find_first_not_of(" \t\r\n") != part.npos, "the text is empty; write some words");
  item.text = parts[0];
  if (item.is_pair) item.second = parts[1];
  return item;
}

ExplainedItems explained_items(const JudgedTask& task, const std::vector<TaskItem>& items,
                               const std::vector<TaskRow>& rows, const std::vector<ItemPrediction>& predictions,
                               const std::string& label, const Tokenizer& tokenizer) {
  Collector collector(task, rows, label_of(task, label), tokenizer);
  for (size_t i = 0, begin = 0; i < items.size(); ++i) {
    auto end = begin;
    while (end < rows.size() && rows[end].item == static_cast<int64_t>(i)) ++end;
    collector.add(i, items[i], predictions[i], begin, end);
    begin = end;
  }
  return std::move(collector.made);
}

}  // namespace cloze
