#pragma once
// The files of a run, by their names.
#include <string>

namespace cloze {

/// Whether a folder is a checkpoint: it has a state.json, and not that of a dataset of the Python library `datasets`.
bool is_checkpoint_folder(const std::string& path);

/// Whether a run has written a file of this name before its first checkpoint.
bool is_first_file(const std::string& name);

/// Whether a run writes a file of this name in its folder.
bool is_run_file(const std::string& name);

/// Whether a checkpoint, prepared text or a saved tokenizer has a file of this name.
bool is_kept_file(const std::string& name);

}  // namespace cloze
