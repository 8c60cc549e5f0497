#pragma once
// What an export says of the task that a run was fine-tuned on: how it read texts, and what it found on the test part.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/report/score.h"
#include "run/run.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

/// The task of a fine-tuned run, without items. Nothing for another run, and where its rows are gone or damaged, which
/// `cloze verify run` finds.
std::optional<PreparedTask> exported_task(const LoadedRun& run);

/// The number of tokens of a row, to which texts were cut; 0: any number.
int64_t row_length(const LoadedRun& run, const TaskConfig& task);

/// How texts were read, in a sentence that a user of transformers has to know.
struct ReadingNote {
  std::string sentence{};
  bool is_lost = false;  ///< pipelines of transformers cannot do it
};
std::vector<ReadingNote> reading_notes(const LoadedRun& run, const TaskConfig& task);

/// What a fine-tuned run found on the test part of its task with the checkpoint that is exported.
struct TestResult {
  /// That which chose first, then those of its kind that say something else, each with the constant floor.
  std::vector<Score> scores{};
  std::string floor_name{};        ///< `majority`
  std::string floor_words{};       ///< what it is
  bool learned = true;             ///< it was better than the floor on the valid part
  std::optional<double> chosen{};  ///< the score of the valid part, by which the step was chosen
  std::vector<std::string> notes{};
};

/// Nothing for a run that has not judged its test part with this checkpoint, or whose records are damaged.
std::optional<TestResult> test_result(const LoadedRun& run, const PreparedTask& task);

/// The keys of a generation_config.json that the task of a run gives; empty for a task that generates nothing.
nlohmann::json decoding_keys(const TaskConfig& task);

}  // namespace cloze
