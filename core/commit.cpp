// The commit of the sources, in a file of its own, which alone is compiled again where it changes.
#include "core/commit.h"

#ifndef CLOZE_COMMIT  // defined where CMake finds a git checkout
#define CLOZE_COMMIT ""
#endif

namespace cloze {

std::string source_commit() { return CLOZE_COMMIT; }

}  // namespace cloze
