#include "evaluation/attribution/row_words.h"

#include <algorithm>
#include <span>

#include "tasks/kinds/tagging/rows.h"

namespace cloze {

namespace {

/// A text as the tokens that rows have parts of.
struct TextTokens {
  std::vector<int32_t> ids{};
  std::vector<int64_t> word_of{};  ///< of each token, ascending
  std::vector<std::string> words{};
};

TextTokens tokens_of_text(const std::string& text, const Tokenizer& tokenizer) {
  TextTokens tokens;
  size_t begin = 0, end = 0;  // of the word
  int64_t last = -1;
  for (const auto& token : tokenizer.encode_with_offsets(text)) {
    if (token.word != last) {
      tokens.words.emplace_back();
      begin = token.begin;
    }
    last = token.word;
    end = std::max(end, token.end);
    begin = std::min(begin, token.begin);
    tokens.words.back() = text.substr(begin, end - begin);
    tokens.ids.push_back(token.id);
    tokens.word_of.push_back(std::ssize(tokens.words) - 1);
  }
  for (auto& word : tokens.words) {
    const auto first = word.find_first_not_of(" \t\r\n");
    if (first != word.npos) word = word.substr(first, word.find_last_not_of(" \t\r\n") + 1 - first);
  }
  return tokens;
}

TextTokens tokens_of_words(const std::vector<std::string>& words, const Tokenizer& tokenizer) {
  TextTokens tokens{.words = words};
  for (size_t w = 0; w < words.size(); ++w)
    for (const auto id : word_tokens(tokenizer, words[w])) {
      tokens.ids.push_back(id);
      tokens.word_of.push_back(static_cast<int64_t>(w));
    }
  return tokens;
}

/// For each token of a part of a row, the token of the text that it is: the part is the beginning of the text, a
/// beginning and an end of it, or a window.
std::vector<size_t> places_in(const std::vector<int32_t>& text, std::span<const int32_t> part) {
  const auto count = static_cast<std::ptrdiff_t>(part.size());
  auto from = std::search(text.begin(), text.end(), part.begin(), part.end());
  auto whole = count;  // tokens up to a gap
  if (from == text.end()) {
    from = text.begin();
    whole = std::mismatch(part.begin(), part.end(), text.begin(), text.end()).first - part.begin();
  }
  std::vector<size_t> places;
  for (std::ptrdiff_t i = 0; i < count; ++i)
    places.push_back(static_cast<size_t>(i < whole ? from - text.begin() + i : std::ssize(text) - count + i));
  return places;
}

/// Positions of a row.
struct Part {
  int64_t begin, end;
};

/// Adds the words of a part of a row. `first`: the token of the text with which it begins; -1: it is looked for.
void add_words(const TextTokens& text, const TaskRow& row, Part part, bool is_second, int64_t first,
               std::vector<RowWord>& words) {
  const auto ids =
      std::span(row.ids).subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.end - part.begin));
  auto places = first < 0 ? places_in(text.ids, ids) : std::vector<size_t>();
  for (size_t i = places.size(); i < ids.size(); ++i) places.push_back(static_cast<size_t>(first) + i);
  int64_t last = -1;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto word = text.word_of.at(places[i]);
    if (word != last) words.push_back({.text = text.words.at(static_cast<size_t>(word)), .is_second = is_second});
    last = word;
    words.back().positions.push_back(part.begin + static_cast<int64_t>(i));
  }
}

/// The token of all words with which a row of them begins; -1: the row does not tell.
int64_t first_token(const TextTokens& text, const TaskRow& row) {
  const auto known = std::ranges::find_if(row.words, [](int64_t word) { return word >= 0; });
  if (known == row.words.end()) return -1;
  const auto start = std::ranges::find(text.word_of, *known) - text.word_of.begin();
  return start - (known - row.words.begin() - row.first_begin);
}

}  // namespace

std::vector<RowWord> words_of_row(const TaskItem& item, const TaskRow& row, AnyTaskKind kind,
                                  const Tokenizer& tokenizer) {
  std::vector<RowWord> words;
  const Part first{row.first_begin, row.first_end}, second{row.second_begin, row.second_end};
  if (kind->has_words) {
    const auto tokens = tokens_of_words(item.words, tokenizer);
    add_words(tokens, row, first, false, first_token(tokens, row), words);
    return words;
  }
  add_words(tokens_of_text(item.text, tokenizer), row, first, false, -1, words);
  auto other = item.second;
  if (kind->has_candidates) {
    const auto& candidate = item.candidates.at(static_cast<size_t>(row.candidate));
    other = other.empty() ? candidate : other + " " + candidate;
  }
  add_words(tokens_of_text(other, tokenizer), row, second, true, -1, words);
  return words;
}

}  // namespace cloze
