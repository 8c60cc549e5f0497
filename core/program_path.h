#pragma once
// Where this program is.
#include <string>

namespace cloze {

/// The file of this program, with links resolved; known without /proc, too.
std::string program_path();

}  // namespace cloze
