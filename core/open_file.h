#pragma once
// Open files and the paths that they were opened by.
#include <string>

namespace cloze {

/// Whether a path still names the open file, which another process may have removed or replaced.
bool is_file_at(int file, const std::string& path);

}  // namespace cloze
