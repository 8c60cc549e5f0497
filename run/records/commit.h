#pragma once
// The commit of the sources, in a file of its own, which alone is compiled again where it changes.
#include <string>

namespace cloze {

/// As `git describe` names it, with `-dirty` where tracked files had changed; empty without a git checkout.
std::string source_commit();

}  // namespace cloze
