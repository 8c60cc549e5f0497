#pragma once
#include <string>

namespace cloze {

/// The commit of the sources as `git describe` names it, with `-dirty` where tracked files had changed; empty without a
/// git checkout.
std::string source_commit();

}  // namespace cloze
