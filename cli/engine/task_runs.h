#pragma once
// Runs that are fine-tuned on a task, for the verbs that open them.
#include <string>

#include "cli/command.h"
#include "evaluation/tasks/judged_task.h"
#include "run/run.h"

namespace cloze {

/// Whether the run of a path is fine-tuned on a task; false for a path that is no run.
bool is_fine_tuned(const std::string& path);

/// A fine-tuned run with its task.
struct TaskRun {
  LoadedRun run{};
  std::string folder{};  ///< of the prepared task
  JudgedTask task{};
};

/// Opens a run. `task`: the file of the task of a network that came with its head; empty: the run is fine-tuned here.
/// Throws ConfigError for a run without a task, and for a fine-tuned one where `task` is given.
TaskRun open_task_run(const std::string& path, CheckpointChoice choice, const std::string& task = "");

/// Checks rows, figures and predictions of a fine-tuned run against their checksums. Throws DataError.
void verify_task(const std::string& run);

/// The verb `evaluate` for fine-tuned runs: prints the figures of their test parts, of two runs of one task their
/// differences, and of several tasks of a benchmark its average. Throws ConfigError for two runs without any of these.
int evaluate_tasks(const EvaluateCommand& command);

/// The verb `predict`.
int run_predict(const PredictCommand& command);

}  // namespace cloze
