#pragma once
// The tokens of a passage, and the windows in which a model reads it.
#include "data/tokenizer.h"
#include "inference/scoring/passage.h"

namespace cloze {

/// What of a passage is tokenized, and how.
enum class PassageText {
  whole,      ///< all three parts in one
  to_scored,  ///< without `right`
  pair        ///< `left` and `scored`, each for itself
};

/// Whether a token of the bytes [begin, end) counts with a text from byte `start` on: it ends after that, or has no
/// bytes, such as a mark of the start of a word, and stands there.
constexpr bool counts_from(size_t start, size_t begin, size_t end) {
  return end > start || (begin == end && begin == start);
}

/// A passage in tokens.
struct EncodedPassage {
  std::vector<TokenSpan> tokens{};  ///< offsets in the text of the passage
  size_t begin = 0, end = 0;        ///< the tokens that count are [begin, end)
};
EncodedPassage encode(const Tokenizer& tokenizer, const Passage& passage, PassageText text);

/// Tokens [begin, end) of a passage that a row reads; those from `scored` on count.
struct Window {
  size_t begin = 0, end = 0, scored = 0;
  bool operator==(const Window&) const = default;
};
/// The windows of a passage for a model that reads `room` of its tokens: one, or for a longer text those that each end
/// `stride` tokens after the one before and score these, the first one all that it reads. Windows without tokens that
/// count are left out. No windows: `stride` is 0, and the text does not fit.
std::vector<Window> windows_of(const EncodedPassage& passage, size_t room, size_t stride);

}  // namespace cloze
