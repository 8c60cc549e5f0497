#pragma once
// The texts of a file to score.
#include <string>
#include <vector>

#include "scoring/passage.h"

namespace cloze {

/// The passages of a file, one a line; `-` is standard input, .gz and .xz are decompressed, blank lines are skipped. A
/// line is a text; a context and its completion with a tab between them; or a JSON object with `text`, with `context`
/// and `completion`, or with `left`, `scored` and `right`. The first line decides which; a file NAME.jsonl has objects,
/// NAME.tsv tabs, whose first line may be `context<TAB>completion`. A completion that does not begin with a space
/// follows its context after one. Throws DataError naming the line of another form, without a text, with a key twice,
/// or that is not UTF-8.
std::vector<Passage> read_passages(const std::string& file);

}  // namespace cloze
