#pragma once
// Answers as SQuAD's programs compare them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/scores/scores.h"

namespace cloze {

/// A text in the lower case of Python's str.lower: with the final sigma, and two code points for the dotted capital I.
std::string python_lower(std::string_view text);

/// Letters, numbers and the underscore: \w of Python's re.
bool is_python_word(int32_t c);

/// An answer in lower case, without ASCII punctuation, without the words a, an, the, and with single spaces, in this
/// order. Words, spaces and case are those of Python's re, str.split and str.lower. Source: evaluate-v2.0.py.
std::string normalised_answer(std::string_view text);

/// Exact match and F1 of the words of an answer, against the one of several right answers that it matches best.
struct AnswerScore {
  double exact = 0, f1 = 0;
};

/// Without right answers, "" is one. Version 1.1 gives an answer of no words an F1 of 0, version 2.0 one of 1 where
/// the right one has none either; and it drops right answers that normalise to nothing, unless all do.
AnswerScore score_answer(const std::string& answer, const std::vector<std::string>& right, SquadVersion version);

}  // namespace cloze
