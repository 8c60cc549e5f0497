#include "scoring/encoded_passage.h"

#include <algorithm>

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// The byte at which each word of a text begins.
struct WordStarts {
  std::vector<size_t> begin;
  std::vector<bool> space;  ///< of each byte
};
WordStarts word_starts(std::string_view text) {
  WordStarts found{.begin = {}, .space = std::vector<bool>(text.size(), false)};
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t first = at;
    const bool space = is_white_space(next_code_point(text, at));
    if (!space && !inside) found.begin.push_back(first);
    if (space)
      std::fill(found.space.begin() + static_cast<std::ptrdiff_t>(first),
                found.space.begin() + static_cast<std::ptrdiff_t>(at), true);
    inside = !space;
  }
  return found;
}

/// Appends the tokens of a text that begins at byte `offset` of its passage.
void append(std::vector<TokenSpan>& tokens, std::vector<TokenSpan> more, size_t offset) {
  for (auto& token : more) tokens.push_back({token.id, token.begin + offset, token.end + offset});
}

}  // namespace

int64_t count_words(std::string_view text) { return static_cast<int64_t>(word_starts(text).begin.size()); }

std::vector<int64_t> words_of_tokens(std::string_view text, std::span<const TokenSpan> tokens) {
  const auto [begins, space] = word_starts(text);
  std::vector<int64_t> words;
  for (const auto& token : tokens) {
    size_t at = token.begin;
    while (at < text.size() && space[at]) ++at;
    const auto after = std::upper_bound(begins.begin(), begins.end(), at) - begins.begin();
    words.push_back(at < text.size() ? std::max<int64_t>(after - 1, 0) : static_cast<int64_t>(begins.size()));
  }
  return words;
}

EncodedPassage encode(const Tokenizer& tokenizer, const Passage& passage, PassageText text) {
  EncodedPassage found;
  const size_t first = passage.left.size(), last = first + passage.scored.size();
  const auto read = passage.left + passage.scored + (text == PassageText::whole ? passage.right : "");
  if (text == PassageText::pair) {
    append(found.tokens, tokenizer.encode_with_offsets(passage.left), 0);
    found.begin = found.tokens.size();
    append(found.tokens, tokenizer.encode_with_offsets(passage.scored), first);
    found.end = found.tokens.size();
  } else {
    found.tokens = tokenizer.encode_with_offsets(read);
    // A token without bytes, such as a mark of the start of a word, counts where it stands.
    const auto counts = [&](const TokenSpan& token) {
      return token.begin < last && (token.end > first || (token.begin == token.end && token.begin == first));
    };
    const auto begin = std::find_if(found.tokens.begin(), found.tokens.end(), counts);
    const auto end = std::find_if_not(begin, found.tokens.end(), counts);
    found.begin = static_cast<size_t>(begin - found.tokens.begin());
    found.end = static_cast<size_t>(end - found.tokens.begin());
  }
  found.words = words_of_tokens(read, found.tokens);
  return found;
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
