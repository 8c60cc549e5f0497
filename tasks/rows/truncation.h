#pragma once
// What is kept of texts that are longer than a row, and windows over them.
#include <array>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "tasks/task_config.h"

namespace cloze {

/// Tokens that are kept of two texts which share the `room` of a row; of one text the second is empty.
///
/// `longest` takes token by token from the longer text, and from the second where both are equally long: as the
/// published code of BERT and ELECTRA. Differs: the Rust library tokenizers takes the odd token from the other text.
/// Where the text that `first` or `second` names is not enough, the other one is cut too. The others cut by `longest`.
/// Source: google-research/bert, run_classifier.py, `_truncate_seq_pair`.
std::array<int64_t, 2> kept_tokens(const Truncation& truncation, int64_t first, int64_t second, int64_t room);

/// The step from window to window where the room is `room`: that of `windows` if it is no longer, else half of the
/// room, so that short models see both sides of every token too.
int64_t step_of(const Truncation& truncation, int64_t room);

/// Of a text: a million tokens have 15,625 windows with a stride of 64.
inline constexpr size_t most_windows = 20'000;
struct TooManyWindows : DataError {
  using DataError::DataError;
};

/// Tokens [begin, end).
struct TokenWindow {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const TokenWindow&) const = default;
};

/// Windows over `count` tokens, at most `room` long, each `step` tokens after the one before (BERT's doc_stride; what
/// tokenizers calls stride is the overlap, room - step). The last one ends with the text. A step that is longer than
/// the room is the room, so that every token is in a window. Throws TooManyWindows.
/// Source: google-research/bert, run_squad.py, `convert_examples_to_features`.
std::vector<TokenWindow> stride_windows(int64_t count, int64_t room, int64_t step);

/// Windows of whole words over the tokens of words one after the other: as above, each from the first token of a word
/// to the last of another. A word that is longer than the room is a window that begins with it, of `room` tokens.
///
/// starts   first token of each word, ascending
/// count    tokens of all words
std::vector<TokenWindow> word_windows(const std::vector<int64_t>& starts, int64_t count, int64_t room, int64_t step);

}  // namespace cloze
