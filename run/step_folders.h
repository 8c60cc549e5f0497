#pragma once
// The step folders of a run, by their names.
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

/// The names of the step folders of a run, newest first; none of a folder that cannot be read.
std::vector<std::string> step_folders(const std::string& run);
/// The step in the name of a step folder.
int64_t step_of_folder(const std::string& name);

}  // namespace cloze
