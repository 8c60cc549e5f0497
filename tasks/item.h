#pragma once
// Items of a task: what its files have, and what is predicted for them. Without LibTorch.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

/// An answer in a context.
struct AnswerSpan {
  std::string text;
  int64_t begin = 0;  ///< byte in the context
  bool operator==(const AnswerSpan&) const = default;
};

/// The id of a label that the training part lacks: never predicted, so that it counts as wrong.
inline constexpr int64_t unknown_label = -1;

/// Which fields of an answer say something.
enum class AnswerForm { none, label, labels, value, spans, texts };

/// What is right for an item, or what is predicted for it: the fields of its form.
struct TaskAnswer {
  AnswerForm form = AnswerForm::none;  ///< none: nobody knows
  int64_t label = unknown_label;       ///< a label, or the number of a candidate
  std::vector<int64_t> labels{};       ///< a set of them, ascending, or one for each word
  std::vector<std::string> unknown{};  ///< of words: what was written for each unknown_label, in their order
  double value = 0;
  std::vector<AnswerSpan> spans{};  ///< what is right: each; what is predicted: the best; empty: there is no answer
  bool is_known() const { return form != AnswerForm::none; }
  std::vector<std::string> texts{};  ///< what is right: each reference, one or more; what is predicted: one text
  /// The first text in a context; empty: there is none.
  std::string text() const { return spans.empty() ? "" : spans.front().text; }
  bool operator==(const TaskAnswer&) const = default;
};
inline TaskAnswer label_answer(int64_t id) { return {.form = AnswerForm::label, .label = id}; }
inline TaskAnswer labels_answer(std::vector<int64_t> ids, std::vector<std::string> unknown = {}) {
  return {.form = AnswerForm::labels, .labels = std::move(ids), .unknown = std::move(unknown)};
}
inline TaskAnswer value_answer(double value) { return {.form = AnswerForm::value, .value = value}; }
inline TaskAnswer spans_answer(std::vector<AnswerSpan> spans) {
  return {.form = AnswerForm::spans, .spans = std::move(spans)};
}
inline TaskAnswer texts_answer(std::vector<std::string> texts) {
  return {.form = AnswerForm::texts, .texts = std::move(texts)};
}
/// An answer in a context of which only the text is known; empty: no answer.
inline TaskAnswer text_answer(const std::string& text) {
  return spans_answer(text.empty() ? std::vector<AnswerSpan>{} : std::vector<AnswerSpan>{{.text = text}});
}

/// An item as its file has it.
struct TaskItem {
  std::string id{};                  ///< its own, else `PART:NUMBER`, counted from 0
  uint64_t line = 0;                 ///< of its file, where it begins
  std::string group{};               ///< what scores are grouped by: the question of MultiRC, the article of SQuAD
  std::string text{}, second{};      ///< spans: the question, the context; choice: the premise, the question or empty
  bool is_pair = false;              ///< it has a second text
  std::vector<std::string> words{};  ///< tagging
  std::vector<std::string> candidates{};  ///< choice
  TaskAnswer gold{};                      ///< what is right
};

/// A question whose context has no answer.
inline bool is_unanswerable(const TaskItem& item) {
  return item.gold.form == AnswerForm::spans && item.gold.spans.empty();
}

/// The labels of a task by id.
struct TaskLabels {
  std::vector<std::string> names{};    ///< as they are shown and exported
  std::vector<std::string> written{};  ///< as they stand in files
  int64_t size() const { return static_cast<int64_t>(names.size()); }
};

/// What a model, or anybody, predicts for an item.
struct TaskPrediction {
  std::string id{};  ///< of the item
  TaskAnswer answer{};
  std::vector<double> probabilities{};  ///< by label or by candidate; empty: not known
  double no_answer = 0;                 ///< of spans: the score of no answer less that of the best answer
  double loss = 0;                      ///< of texts: that of the first reference, the mean over its tokens
  int64_t count = 0;                    ///< of texts: the tokens that the loss is of; 0: it is not known
};

}  // namespace cloze
