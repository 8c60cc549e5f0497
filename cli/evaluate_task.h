#pragma once
// `cloze evaluate --task`: figures of anybody's predictions for a task, without a run and without LibTorch.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tasks/floors.h"

namespace cloze {

struct TaskFiguresCommand {
  std::string task{}, part = "test", predictions{}, against{}, no_answer{}, out{}, format = "text";
  std::optional<EntityScheme> scheme{};  ///< none: that of the task
  double threshold = 1;                  ///< of --no-answer, as in SQuAD's program
  bool with_words = false, json = false;
};

/// --task, and the options that need it.
void add_task_figures(CLI::App& verb, TaskFiguresCommand& command);

/// Prints figures of predictions for a part of a task. Throws ConfigError and DataError.
void print_task_figures(const TaskFiguresCommand& command);

}  // namespace cloze
