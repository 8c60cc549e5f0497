#include "inference/scoring/encoded_passage.h"

#include <algorithm>
#include <iterator>

namespace cloze {

namespace {

/// Appends the tokens of a text that begins at byte `offset` of its passage, and a word of its own.
void append(std::vector<TokenSpan>& tokens, const std::vector<TokenSpan>& more, size_t offset) {
  const auto word = tokens.empty() ? 0 : tokens.back().word + 1;
  for (const auto& token : more)
    tokens.push_back({token.id, token.begin + offset, token.end + offset, token.word + word});
}

}  // namespace

EncodedPassage encode(const Tokenizer& tokenizer, const Passage& passage, PassageText text) {
  EncodedPassage encoded_passage;
  const size_t first = passage.left.size(), last = first + passage.scored.size();
  const auto read = passage.left + passage.scored + (text == PassageText::whole ? passage.right : "");
  if (text == PassageText::pair) {
    append(encoded_passage.tokens, tokenizer.encode_with_offsets(passage.left), 0);
    encoded_passage.begin = encoded_passage.tokens.size();
    append(encoded_passage.tokens, tokenizer.encode_with_offsets(passage.scored), first);
    encoded_passage.end = encoded_passage.tokens.size();
  } else {
    encoded_passage.tokens = tokenizer.encode_with_offsets(read);
    const auto counts = [&](const TokenSpan& token) {
      return token.begin < last && counts_from(first, token.begin, token.end);
    };
    auto begin = std::find_if(encoded_passage.tokens.begin(), encoded_passage.tokens.end(), counts);
    const auto end = std::find_if_not(begin, encoded_passage.tokens.end(), counts);
    // So does the space before it where that is a token of its own, since in other texts it is the beginning of one.
    const auto is_space = [&](const TokenSpan& token) {
      return token.begin < first && token.end == first && read.find_first_not_of(' ', token.begin) >= first;
    };
    if (begin != end && begin != encoded_passage.tokens.begin() && is_space(*std::prev(begin))) --begin;
    encoded_passage.begin = static_cast<size_t>(begin - encoded_passage.tokens.begin());
    encoded_passage.end = static_cast<size_t>(end - encoded_passage.tokens.begin());
  }
  return encoded_passage;
}

std::vector<Window> windows_of(const EncodedPassage& passage, size_t room, size_t stride) {
  const size_t count = passage.tokens.size();
  if (count <= room) return {{0, count, 0}};
  std::vector<Window> windows;
  if (stride == 0) return windows;
  for (size_t end = room, scored = 0; scored < count; scored = end, end = std::min(count, end + stride)) {
    const bool any = scored < passage.end && end > passage.begin;
    if (any) windows.push_back({end - room, end, scored});
  }
  return windows;
}

}  // namespace cloze
