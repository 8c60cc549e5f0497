#pragma once
// Runs that are fine-tuned on a task, for the verbs that open them.
#include <string>

#include "evaluation/tasks/judged_task.h"
#include "run/checkpoints/chosen_checkpoint.h"
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

/// Checks rows, scores and predictions of a fine-tuned run against their checksums. Throws DataError.
void verify_task(const std::string& run);

/// `cloze evaluate tasks`: prints the scores of the test parts of fine-tuned runs, of two runs of one task their
/// differences, and of several tasks of a benchmark its average. Throws ConfigError for two runs without any of these,
/// and for a run that is not fine-tuned.
void evaluate_tasks(const RunSelection& selection);

/// Throws DataError for a run whose predictions are no numbers.
void require_finite(const std::vector<ItemPrediction>& predictions, const std::string& run);

/// Figures, with their tables one below the other.
std::string tables_text(const std::string& task, const TaskScores& scores);

/// Draws of the bootstrap that gives scores their intervals.
inline constexpr int64_t interval_resamples = 1000;

}  // namespace cloze
