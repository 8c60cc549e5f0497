#pragma once
// The files of a run: their names, and what its folder holds by them.
#include <string>

namespace cloze {

/// The name of the file that a process locks while it trains the run.
inline constexpr const char* run_lock = "lock";

/// Whether a file name is that of a step folder: `step-00001200`.
bool is_step_name(const std::string& name);

/// The step folder of a run with the largest step; empty without any.
std::string newest_step(const std::string& run);

/// The folder in a run with what came with an imported model.
inline constexpr const char* imported_folder = "huggingface";
/// A file in it: the dropout that its config.json gives to heads of tasks, by the name of the kind.
inline constexpr const char* head_dropout_file = "head_dropout.json";

/// The folder in a fine-tuned run with the rows of its task.
inline constexpr const char* task_folder = "task";

/// The folder in a run with the logs of all processes that train it but the first.
inline constexpr const char* ranks_folder = "ranks";

/// Whether a folder is a checkpoint: it has a state.json, and not that of a dataset of the Python library `datasets`.
bool is_step_folder(const std::string& path);

/// Whether a run has written a file of this name before its first checkpoint.
bool is_first_file(const std::string& name);

/// Whether a run writes a file of this name in its folder.
bool is_run_file(const std::string& name);

/// Whether a file name is that of something which a run left half written.
bool is_left_of_run(const std::string& name);

/// Whether a checkpoint, prepared text or a saved tokenizer has a file of this name.
bool is_kept_file(const std::string& name);

/// What the folder of a run holds.
enum class RunFolder {
  vacant,  ///< nothing, or what a killed process left half written
  begun,   ///< provenance.json and other first files of a run that never saved a checkpoint: it may begin anew
  saved,   ///< a run with a checkpoint, which may be damaged or removed
  other,   ///< something else
};

/// Throws Error for a folder that cannot be read.
RunFolder run_folder(const std::string& run);

}  // namespace cloze
