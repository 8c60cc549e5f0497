#pragma once
// Rule-based sentence splitting.
#include <string_view>
#include <vector>

#include "data/reading/reader.h"

namespace cloze {

/// Appends the sentences of a paragraph, without the white space between them. A sentence ends at . ! ? (with closing
/// quotes and brackets) before white space and a capital, a digit or an opening mark, unless the stop belongs to an
/// abbreviation, an initial or an ellipsis that continues in lower case; and at the stops of other scripts (Chinese,
/// Hindi, Arabic, Amharic, Burmese, Khmer, Armenian, ...), with or without white space. White space is that of Unicode:
/// a no-break space is a space.
void split_sentences(std::string_view paragraph, std::vector<std::string_view>& out);

/// The number of a document's last sentences that are its tail: as many as fit into `document.tail_bytes`, at least one
/// and never all; 0 without a tail.
size_t tail_sentences(const RawDocument& document, bool sentences_given);

}  // namespace cloze
