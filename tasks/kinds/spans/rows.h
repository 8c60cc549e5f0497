#pragma once
// Rows of a question and windows of its context.
#include <string_view>
#include <vector>

#include "tasks/rows/rows.h"

namespace cloze {

/// The tokens of a text with the bytes of it that an answer of these tokens takes: whole characters, without white
/// space and invisible characters at the ends of a token that has more.
std::vector<TokenSpan> context_tokens(const Tokenizer& tokenizer, std::string_view text);

/// The question, at most half of a row, and a window of the context. A window with a whole answer (of the item's
/// answers the first) points at the tokens around it, another one at the no-answer place.
void add_context_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                      RowCounts& counts);

}  // namespace cloze
