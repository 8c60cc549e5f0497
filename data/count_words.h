#pragma once
// The words of a text as budgets and scores count them.
#include <cstdint>
#include <string_view>

namespace cloze {

/// The number of words of a text, separated by white space, that of Unicode included.
int64_t count_words(std::string_view text);

}  // namespace cloze
