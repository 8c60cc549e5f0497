#include "data/reading/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "data/reading/text_lines.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// Words that end in a stop without ending a sentence, lower case, sorted.
constexpr std::array<std::string_view, 57> abbreviations = {
    "adm", "apr",  "approx", "aug", "ave", "bros", "capt", "cf",  "ch",   "co",  "col", "corp", "dec", "dept", "dr",
    "e.g", "ed",   "eds",    "eq",  "est", "etc",  "feb",  "fig", "figs", "gen", "gov", "hon",  "i.e", "inc",  "jan",
    "jr",  "jul",  "jun",    "lt",  "ltd", "maj",  "mr",   "mrs", "ms",   "mt",  "nos", "nov",  "oct", "op",   "p",
    "pp",  "prof", "pt",     "rev", "sen", "sept", "sgt",  "sr",  "st",   "viz", "vol", "vs"};

/// Stops of other scripts than Latin, which end a sentence with or without white space after them. Source: Unicode
/// Standard Annex 29, property Sentence_Break = STerm. Differs: with the strokes of Tibetan, without the little section
/// of Burmese, which ends clauses. Ascending.
constexpr std::array script_stops = {0x0589, 0x061D, 0x061E, 0x061F, 0x06D4, 0x0700, 0x0701, 0x0702, 0x07F9, 0x0837,
                                     0x0839, 0x083D, 0x083E, 0x0964, 0x0965, 0x0F0D, 0x0F0E, 0x104B, 0x1362, 0x1367,
                                     0x1368, 0x166E, 0x1735, 0x1736, 0x17D4, 0x17D5, 0x1803, 0x1809, 0x1944, 0x1945,
                                     0x1B5A, 0x1B5B, 0x1B5E, 0x1B5F, 0x1C3B, 0x1C3C, 0x1C7E, 0x1C7F, 0x203C, 0x2047,
                                     0x2048, 0x2049, 0x3002, 0xA4FF, 0xA60E, 0xA60F, 0xA6F3, 0xA6F7, 0xA876, 0xA877,
                                     0xA8CE, 0xA8CF, 0xA92F, 0xA9C8, 0xA9C9, 0xABEB, 0xFE12, 0xFF01, 0xFF1F, 0xFF61};

bool is_script_stop(int32_t c) {
  return c >= script_stops.front() && std::binary_search(script_stops.begin(), script_stops.end(), c);
}

/// Where the characters of a text from `at` on end that a rule is true of.
template <class Rule>
size_t past_all(std::string_view text, size_t at, const Rule& rule) {
  while (at < text.size()) {
    const size_t character = at;
    if (!rule(next_code_point(text, at))) return character;
  }
  return at;
}

bool begins_with_white_space(std::string_view text, size_t at) {
  return at < text.size() && is_white_space(next_code_point(text, at));
}

/// The word right before `stop`, with its inner stops, lower case.
bool ends_in_abbreviation(std::string_view text, size_t stop) {
  size_t begin = stop;
  while (begin > 0 && (std::isalpha(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '.')) --begin;
  const auto word = text.substr(begin, stop - begin);
  if (word.size() == 1 && std::isupper(static_cast<unsigned char>(word[0])) && word[0] != 'I')
    return true;                                                      // an initial
  if (word.size() >= 3 && word[word.size() - 2] == '.') return true;  // U.S.
  if (word.empty() || word.size() > 6) return false;
  std::array<char, 6> lower{};
  std::transform(word.begin(), word.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return std::binary_search(abbreviations.begin(), abbreviations.end(), std::string_view(lower.data(), word.size()));
}

/// Moves past closing quotes and brackets.
size_t past_closers(std::string_view text, size_t at) {
  for (;;) {
    if (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == ')' || text[at] == ']')) {
      ++at;
    } else if (text.substr(at, 3) == "\u201D" || text.substr(at, 3) == "\u2019") {
      at += 3;
    } else if (text.substr(at, 2) == "\u00BB") {
      at += 2;
    } else {
      return at;
    }
  }
}

/// Whether a mark right after a stop of a script belongs to the sentence: a closing bracket or quote.
bool closes(int32_t c) { return c >= 0x80 && is_closing_punctuation(c); }

/// True where a sentence may begin: a capital, a digit, an opening mark, or a letter outside ASCII.
bool may_begin(std::string_view text, size_t at) {
  if (at >= text.size()) return true;
  const auto c = static_cast<unsigned char>(text[at]);
  return std::isupper(c) || std::isdigit(c) || c == '"' || c == '\'' || c == '(' || c == '[' || c >= 0x80;
}

}  // namespace

void split_sentences(std::string_view text, std::vector<std::string_view>& out) {
  size_t begin = 0;
  const auto finish = [&](size_t end) {
    const auto sentence = without_white_space_around(text.substr(begin, end - begin));
    if (!sentence.empty()) out.push_back(sentence);
    begin = end;
  };
  const auto is_latin_stop = [](char c) { return c == '.' || c == '!' || c == '?'; };
  for (size_t at = 0; at < text.size();) {
    const char stop = text[at];
    if (is_latin_stop(stop)) {
      const size_t first_stop = at;
      while (at < text.size() && is_latin_stop(text[at])) ++at;
      const size_t end = past_closers(text, at);
      if (end < text.size() && !begins_with_white_space(text, end)) continue;
      const size_t next = past_white_space(text, end);
      if (!may_begin(text, next)) continue;
      if (stop == '.' && at == first_stop + 1 && next < text.size() && ends_in_abbreviation(text, first_stop)) continue;
      at = end;
      finish(end);
    } else if (is_script_stop(next_code_point(text, at))) {
      at = past_all(text, past_all(text, at, is_script_stop), closes);
      finish(at);
    }
  }
  finish(text.size());
}

size_t tail_sentences(const RawDocument& document, bool sentences_given) {
  if (document.tail_bytes == 0) return 0;
  std::vector<std::string_view> sentences;
  for (const auto& line : document.lines) {
    if (sentences_given)
      sentences.emplace_back(line);
    else
      split_sentences(line, sentences);
  }
  size_t tail = 0;
  for (uint64_t bytes = 0; tail + 1 < sentences.size(); ++tail) {
    bytes += sentences[sentences.size() - 1 - tail].size();
    if (tail > 0 && bytes > document.tail_bytes) break;
  }
  return tail;
}

}  // namespace cloze
