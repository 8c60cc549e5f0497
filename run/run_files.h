#pragma once
// The names of the files of a run.
#include <string>

namespace cloze {

/// The folder in a run with what came with an imported model.
inline constexpr const char* imported_folder = "huggingface";

/// Whether a run has written a file of this name before its first checkpoint.
bool is_first_file(const std::string& name);

/// Whether a run writes a file of this name in its folder.
bool is_run_file(const std::string& name);

/// Whether a checkpoint, prepared text or a saved tokenizer has a file of this name.
bool is_kept_file(const std::string& name);

}  // namespace cloze
