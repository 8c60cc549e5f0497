#pragma once
// Paragraphs to sentences, by rules.
#include <string_view>
#include <vector>

namespace cloze {

/// Appends the sentences of a paragraph, without the white space between them. A sentence ends at . ! ? (with closing
/// quotes and brackets) before white space and a capital, a digit or an opening mark, unless the stop belongs to an
/// abbreviation, an initial or an ellipsis that goes on in lower case; and at the full stops of Chinese and Japanese.
void split_sentences(std::string_view paragraph, std::vector<std::string_view>& out);

}  // namespace cloze
