#include "tasks/scores/squad_score.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

constexpr int32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;

struct CodeRange {
  int32_t first, last;
};

template <size_t N>
bool is_in(const CodeRange (&ranges)[N], int32_t c) {
  return std::ranges::any_of(ranges, [c](const CodeRange& r) { return r.first <= c && c <= r.last; });
}

/// Properties Other_Lowercase and Other_Uppercase.
constexpr CodeRange other_cased[] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
                                     {0x2E0, 0x2E4},     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},
                                     {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
                                     {0x2090, 0x209C},   {0x2160, 0x217F},   {0x24B6, 0x24E9},   {0x2C7C, 0x2C7D},
                                     {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},
                                     {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
                                     {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

/// Word_Break = MidLetter, MidNumLet or Single_Quote.
constexpr CodeRange inside_words[] = {{0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
                                      {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
                                      {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
                                      {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};

bool is_cased(int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         is_in(other_cased, c);
}

bool is_case_ignorable(int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return is_in(inside_words, c);
  }
}

/// White space of str.split: Unicode's and the separators of ASCII.
bool is_python_space(int32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// Unicode's condition Final_Sigma: a cased letter before it and none after it, apart from what is ignored.
bool is_final(const std::vector<int32_t>& codes, size_t at) {
  auto before = at;
  while (before > 0 && is_case_ignorable(codes[before - 1])) --before;
  if (before == 0 || !is_cased(codes[before - 1])) return false;
  auto after = at + 1;
  while (after < codes.size() && is_case_ignorable(codes[after])) ++after;
  return after == codes.size() || !is_cased(codes[after]);
}

std::vector<int32_t> code_points_of(std::string_view text) {
  std::vector<int32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const auto c = next_code_point(text, at);
    codes.push_back(c < 0 ? 0xFFFD : c);
  }
  return codes;
}

std::vector<int32_t> lowered(const std::vector<int32_t>& codes) {
  std::vector<int32_t> lower_codes;
  lower_codes.reserve(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == capital_sigma) {
      lower_codes.push_back(is_final(codes, i) ? final_sigma : small_sigma);
      continue;
    }
    int32_t second = 0;
    lower_codes.push_back(lower(codes[i], second));
    if (second != 0) lower_codes.push_back(second);
  }
  return lower_codes;
}

bool is_ascii_mark(int32_t c) { return c > 0x20 && c < 0x7F && is_punctuation(c); }

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

std::vector<std::string_view> words_in(std::string_view normalised) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < normalised.size();) {
    const auto end = std::min(normalised.find(' ', begin), normalised.size());
    words.push_back(normalised.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

double word_f1(const std::string& answer, const std::string& right, SquadVersion version) {
  const auto said = words_in(answer), wanted = words_in(right);
  if (version == SquadVersion::v2_0 && (said.empty() || wanted.empty())) return said == wanted ? 1 : 0;
  std::map<std::string_view, int64_t> left;
  for (const auto& word : wanted) ++left[word];
  int64_t common = 0;
  for (const auto& word : said)
    if (left[word]-- > 0) ++common;
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(said.size());
  const double recall = static_cast<double>(common) / static_cast<double>(wanted.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

bool is_python_word(int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return is_number(c) || c == '_';
  }
}

std::string python_lower(std::string_view text) {
  std::string lower;
  for (const auto c : lowered(code_points_of(text))) append_code_point(lower, c);
  return lower;
}

std::string normalised_answer(std::string_view text) {
  auto codes = lowered(code_points_of(text));
  std::erase_if(codes, is_ascii_mark);
  std::string kept, word;
  const auto end_word = [&] {  // of characters that may stand in a word, in which an article is no article
    kept += is_article(word) ? " " : word;
    word.clear();
  };
  for (const auto c : codes) {
    if (is_python_word(c)) {
      append_code_point(word, c);
      continue;
    }
    end_word();
    append_code_point(kept, is_python_space(c) ? ' ' : c);
  }
  end_word();
  std::string joined;
  for (const auto& one : words_in(kept)) {
    if (one.empty()) continue;
    if (!joined.empty()) joined += ' ';
    joined += one;
  }
  return joined;
}

AnswerScore score_answer(const std::string& answer, const std::vector<std::string>& right, SquadVersion version) {
  std::vector<std::string> wanted;
  for (const auto& one : right)
    if (auto normal = normalised_answer(one); version == SquadVersion::v1_1 || !normal.empty())
      wanted.push_back(std::move(normal));
  if (wanted.empty()) wanted.emplace_back();
  const auto said = normalised_answer(answer);
  AnswerScore best;
  for (const auto& one : wanted) {
    if (one == said) best.exact = 1;
    best.f1 = std::max(best.f1, word_f1(said, one, version));
  }
  return best;
}

}  // namespace cloze
