#pragma once
// The kind of a task as the head that is made for it, and back.
#include "objectives/task_heads/task_heads.h"
#include "tasks/item.h"

namespace cloze {

/// The kind of task that a head is for.
inline TaskKind task_kind_of(const TaskHead& head) { return choice_of<TaskKind>(head.name()); }

/// The objective as the head of a task, or null; `task` receives its kind.
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
