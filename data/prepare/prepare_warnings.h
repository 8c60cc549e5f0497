#pragma once
// What `prepare` warns of.
#include "data/prepare/prepare.h"
#include "data/prepare/split.h"

namespace cloze {

/// Warns of a text that a model would learn badly from: with duplicates, another held-out share than was asked for,
/// invalid bytes, or tokens that do not fit it.
void warn_of_text(const PrepareOptions& options, const Split& split, const PrepareReport& report);

}  // namespace cloze
