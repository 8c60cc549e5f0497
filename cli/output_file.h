#pragma once
// Files that a verb writes for a user.
#include <string>
#include <vector>

namespace cloze {

/// Throws ConfigError, which begins with `option`, for a path that is not to be written over: a folder, a device, and a
/// file that a run, a checkpoint, prepared text or a tokenizer needs.
void check_overwritten(const std::string& option, const std::string& path);
/// As check_overwritten, also for a file in a folder that is not there, and for one of those that are read.
void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& read = {});

}  // namespace cloze
