#pragma once
// Small damage to bytes.
#include <string>

#include "core/random.h"

namespace cloze {

/// `bytes` with one to four changes: bits flipped, bytes set, cut off, removed, doubled, or replaced by a text that
/// parsers stumble over.
std::string mutated(std::string bytes, Stream& random);

}  // namespace cloze
