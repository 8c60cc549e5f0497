#pragma once
// How a run reads texts, for the tokenizer that is exported with it.
#include "run/run.h"

namespace cloze {

/// The reader for which `Tokenizer::save` writes the tokenizer of an export: the family's special tokens, the longest
/// input, a space before the first word where the head is one of tags, whose words have theirs, and the id of padding
/// by which GPT-2's class finds the last token of a text.
TextReader reader_of(const LoadedRun& run);

}  // namespace cloze
