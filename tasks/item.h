#pragma once
// Items of a task: what its files have, and what is predicted for them. Without LibTorch.
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// What a task asks for.
enum class TaskKind { classification, multilabel, regression, tagging, spans, choice };
constexpr auto choices(TaskKind) {
  using enum TaskKind;
  return std::array{Choice{classification, "classification", "one label of a text or of a pair of texts"},
                    Choice{multilabel, "multilabel", "any number of labels of a text or of a pair of texts"},
                    Choice{regression, "regression", "a number for a text or for a pair of texts"},
                    Choice{tagging, "tagging", "a tag for each word"},
                    Choice{spans, "spans", "the answer to a question in a context, or that there is none"},
                    Choice{choice, "choice", "one of an item's candidates"}};
}

/// An answer in a context.
struct AnswerSpan {
  std::string text;
  int64_t begin = 0;  ///< byte in the context
  bool operator==(const AnswerSpan&) const = default;
};

/// The id of a label that the training part lacks: never predicted, so that it counts as wrong.
inline constexpr int64_t unknown_label = -1;

struct NoGold {
  bool operator==(const NoGold&) const = default;
};
struct GoldLabel {
  int64_t id = unknown_label;  ///< of classification: a label; of choice: a candidate
  bool operator==(const GoldLabel&) const = default;
};
struct GoldLabels {
  std::vector<int64_t> ids{};          ///< of multilabel: ascending; of tagging: one for each word
  std::vector<std::string> unknown{};  ///< of tagging: what stands in the file for each unknown_label, in their order
  bool operator==(const GoldLabels&) const = default;
};
struct GoldValue {
  double value = 0;
  bool operator==(const GoldValue&) const = default;
};
struct GoldAnswers {
  std::vector<AnswerSpan> answers{};  ///< each is right; empty: the context has no answer
  bool operator==(const GoldAnswers&) const = default;
};
/// What is right for an item.
using Gold = std::variant<NoGold, GoldLabel, GoldLabels, GoldValue, GoldAnswers>;

/// An item as its file has it.
struct TaskItem {
  std::string id{};                  ///< its own, else `PART:NUMBER`, counted from 0
  uint64_t line = 0;                 ///< of its file, where it begins
  std::string group{};               ///< what figures are grouped by: the question of MultiRC, the article of SQuAD
  std::string text{}, second{};      ///< spans: the question, the context; choice: the premise, the question or empty
  bool is_pair = false;              ///< it has a second text
  std::vector<std::string> words{};  ///< tagging
  std::vector<std::string> candidates{};  ///< choice
  Gold gold{};
};

/// The labels of a task by id.
struct TaskLabels {
  std::vector<std::string> names{};    ///< as they are shown and exported
  std::vector<std::string> written{};  ///< as they stand in files
  int64_t size() const { return static_cast<int64_t>(names.size()); }
};

/// What a model, or anybody, predicts for an item.
struct TaskPrediction {
  std::string id{};                    ///< of the item
  int64_t label = unknown_label;       ///< classification and choice; unknown_label: none of the labels
  std::vector<int64_t> labels{};       ///< multilabel: ascending; tagging: one for each word
  std::vector<std::string> unknown{};  ///< tagging: what was predicted for each unknown_label, in their order
  double value = 0;                    ///< regression
  std::string answer{};                ///< spans; empty: no answer
  /// Probabilities: classification and multilabel by label, choice by candidate; empty: not known.
  std::vector<double> probabilities{};
  double no_answer = 0;  ///< spans: the score of no answer less that of the best answer
};

}  // namespace cloze
