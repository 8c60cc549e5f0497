#pragma once
// What the heads of tasks are for.
#include <array>

#include "objectives/task_heads/task_heads.h"

namespace cloze {

/// What a head of a task is for.
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

/// What this head is for.
inline TaskKind task_kind_of(const TaskHead& head) { return choice_of<TaskKind>(head.name()); }

/// The objective as the head of a task, or null; `task` receives what it is for.
inline const TaskHead* task_head_of(const ObjectiveConfig& objective, TaskKind* task) {
  const auto* head = task_head_of(objective);
  if (head) *task = task_kind_of(*head);
  return head;
}

/// What a head of a task gives outputs for.
constexpr HeadUse use_of(TaskKind task) {
  return task == TaskKind::tagging  ? HeadUse::tokens
         : task == TaskKind::spans  ? HeadUse::spans
         : task == TaskKind::choice ? HeadUse::candidates
                                    : HeadUse::texts;
}

/// The task has one state for each text, or for each candidate.
constexpr bool reads_texts(TaskKind task) { return reads_texts(use_of(task)); }

}  // namespace cloze
