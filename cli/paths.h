#pragma once
// What a path is, and what to do with it where something else belongs.
#include <string>
#include <vector>

#include "data/config.h"

namespace cloze {

/// What a path is, by the files in it.
enum class PathKind { absent, file, run, step, tokens, tokenizer, huggingface, other };
PathKind kind_of_path(const std::string& path);

/// What a word names, by the keys of a file of YAML, or of what ships under that name.
enum class Declared { nothing, config, task, study, recipe };
Declared declared_by(const std::string& path);
/// What a word names, a file or a config, a task, a study or a recipe that ships, and what is done with it: `a task;
/// \`cloze finetune RUN sst2\` trains a run on it`; empty for what declares nothing.
std::string words_on_declared(const std::string& path);
/// Throws ConfigError for what declares something else than `own`, where `wanted` belongs: `a suite`.
void refuse_declared(const std::string& path, Declared own, const std::string& wanted);

/// Whether a path is a run or a step folder of one.
bool is_run_path(const std::string& path);
/// The run directory that a step folder is in, by its path alone.
std::string run_of_step(const std::string& path);

/// How many runs an argument may name.
enum class RunCount { one, several };

/// Throws CheckpointError for a path that does not exist, with the nearest run, and for files and folders of other
/// kinds; of a folder of runs, with `count` runs to name in it.
void check_run_path(const std::string& path, RunCount count = RunCount::one);
/// As check_run_path of the first argument of a verb; where it is no run and one of the others is, says which is first.
void check_run_first(const std::string& path, const std::vector<std::string>& others);
/// As check_run_path, also for a step folder and a folder of no kind, where all of a run is asked for.
void check_whole_run_path(const std::string& path, RunCount count = RunCount::one);
/// Throws ConfigError for what a new run cannot be made in, and no run can be resumed from: a file, or a folder that is
/// something else.
void check_training_path(const std::string& path);
/// The file of a config, or of what else is declared: `path`, or where there is none, the one of that name that ships
/// with the program, which is logged: `roberta/tiny`, with or without .yaml. Throws ConfigError for a folder or a text
/// where a YAML file belongs, for one that declares something else, and for a missing file with a similar name.
std::string config_file(const std::string& path, Declared own = Declared::config);
/// The file of a study: `path`, or the ready study of that name. Throws ConfigError as config_file.
std::string study_file(const std::string& path);
/// The file of a task: `name`, or where there is none, or a folder such as that of its data or a run on it, the task of
/// that name that ships with the program, which is logged: `sst2`, `tasks/sst2.yaml`; empty for none.
std::string task_file(const std::string& name);
/// Throws ConfigError for what is not there and has nearly the name of a task that ships; of what can be nothing but a
/// task, `is_task`, for any other word too.
void check_task_name(const std::string& name, bool is_task);
/// Throws ConfigError for a config or a study where a task file belongs, for a file of items, which a task file names,
/// and for one that does not exist.
void check_task_file(const std::string& path);
/// Throws ConfigError for a folder or a task where a file of items belongs.
void check_items_path(const std::string& path);
/// Throws DataError for a file, a run or a model where prepared text belongs, and for a missing folder with a similar
/// name.
void check_tokens_path(const std::string& path);
/// The same for every text that a config names.
void check_tokens_paths(const DataConfig& data);
/// Throws DataError for a run or prepared text where files of text belong.
void check_text_path(const std::string& path);
/// Throws DataError for a text where a tokenizer belongs.
void check_tokenizer_path(const std::string& path);
/// Throws DataError for a file of a run where a table of runs belongs, CheckpointError for a name without an ending
/// that is neither a file nor a run.
void check_points_path(const std::string& path);
/// The tokenizer of a run, a step folder or prepared text; any other path itself.
std::string tokenizer_of(const std::string& path);
/// Throws ConfigError for a model's name or address at a hub, from which nothing is downloaded, CheckpointError for a
/// file, a run or prepared text.
void check_import_path(const std::string& path);
/// Throws CheckpointError for a file, a run, prepared text or a tokenizer where a folder with a golden case belongs.
void check_case_path(const std::string& path);
/// `; did you mean 'runs/first'?` for the run next to `path`, or in runs/, with the most similar name; or empty.
std::string near_run(const std::string& path);

/// Throws ConfigError, which begins with `option`, for a path that is not to be written over: a folder, a device, and a
/// file that a run, a checkpoint, prepared text or a tokenizer needs.
void check_overwritten(const std::string& option, const std::string& path);
/// As check_overwritten, also for a file in a folder that is not there, and for one of those that are read.
void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& read = {});

}  // namespace cloze
