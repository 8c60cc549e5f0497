#pragma once
// The word that was meant, and the shortest spelling of a number.
#include <string>
#include <vector>

namespace cloze {

/// The candidate most similar to a mistyped word, or empty if none is similar or the word is long. Source: Damerau
/// 1964.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
/// `; did you mean 'x'?` or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
/// A text with its control characters, and bytes that are not UTF-8, as escapes, such as `\n` and `\x1b`.
std::string visible(const std::string& text);
/// A text of a user as a message repeats it: visible, and cut to about a hundred bytes, with an ellipsis.
std::string shortened(const std::string& text);
/// The shortest text of a number that parses to the same value.
std::string shortest(double value);

}  // namespace cloze
