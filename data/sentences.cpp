#include "data/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// Words that end in a stop without ending a sentence, lower case, sorted.
constexpr std::array<std::string_view, 57> abbreviations = {
    "adm", "apr",  "approx", "aug", "ave", "bros", "capt", "cf",  "ch",   "co",  "col", "corp", "dec", "dept", "dr",
    "e.g", "ed",   "eds",    "eq",  "est", "etc",  "feb",  "fig", "figs", "gen", "gov", "hon",  "i.e", "inc",  "jan",
    "jr",  "jul",  "jun",    "lt",  "ltd", "maj",  "mr",   "mrs", "ms",   "mt",  "nos", "nov",  "oct", "op",   "p",
    "pp",  "prof", "pt",     "rev", "sen", "sept", "sgt",  "sr",  "st",   "viz", "vol", "vs"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\v'; }

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

/// True where a sentence may begin: a capital, a digit, an opening mark, or a letter outside ASCII.
bool may_begin(std::string_view text, size_t at) {
  if (at >= text.size()) return true;
  const auto c = static_cast<unsigned char>(text[at]);
  return std::isupper(c) || std::isdigit(c) || c == '"' || c == '\'' || c == '(' || c == '[' || c >= 0x80;
}

/// Length of a full stop of Chinese or Japanese at `at`, or 0.
size_t wide_stop(std::string_view text, size_t at) {
  const auto three = text.substr(at, 3);
  return three == "\u3002" || three == "\uFF01" || three == "\uFF1F" ? 3 : 0;
}

size_t past_wide_closers(std::string_view text, size_t at) {
  while (text.substr(at, 3) == "\u300D" || text.substr(at, 3) == "\u300F" || text.substr(at, 3) == "\uFF09" ||
         text.substr(at, 3) == "\u201D")
    at += 3;
  return at;
}

}  // namespace

void split_sentences(std::string_view text, std::vector<std::string_view>& out) {
  size_t begin = 0;
  const auto finish = [&](size_t end) {
    size_t first = begin, last = end;
    while (first < last && is_space(text[first])) ++first;
    while (last > first && is_space(text[last - 1])) --last;
    if (last > first) out.push_back(text.substr(first, last - first));
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    at = text.find_first_of(".!?\xE3\xEF", at);
    if (at == std::string_view::npos) break;
    if (const size_t wide = wide_stop(text, at)) {
      at = past_wide_closers(text, at + wide);
      finish(at);
      continue;
    }
    const char stop = text[at];
    const size_t first_stop = at;
    while (at < text.size() && (text[at] == '.' || text[at] == '!' || text[at] == '?')) ++at;
    if (at == first_stop) {  // another character with the same first byte
      ++at;
      continue;
    }
    const size_t end = past_closers(text, at);
    if (end < text.size() && !is_space(text[end])) continue;
    size_t next = end;
    while (next < text.size() && is_space(text[next])) ++next;
    if (!may_begin(text, next)) continue;
    if (stop == '.' && at == first_stop + 1 && next < text.size() && ends_in_abbreviation(text, first_stop)) continue;
    at = end;
    finish(end);
  }
  finish(text.size());
}

size_t tail_sentences(const RawDocument& document, bool sentences_given) {
  if (document.tail_bytes == 0) return 0;
  std::vector<std::string_view> found;
  for (const auto& line : document.lines) {
    if (sentences_given)
      found.emplace_back(line);
    else
      split_sentences(line, found);
  }
  size_t tail = 0;
  for (uint64_t bytes = 0; tail + 1 < found.size(); ++tail) {
    bytes += found[found.size() - 1 - tail].size();
    if (tail > 0 && bytes > document.tail_bytes) break;
  }
  return tail;
}

}  // namespace cloze
