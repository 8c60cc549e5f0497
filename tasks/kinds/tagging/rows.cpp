#include "tasks/kinds/tagging/rows.h"

#include <algorithm>

#include "core/error.h"

namespace cloze {

namespace {

/// For each word with tokens the window that it belongs to: the one with the most tokens on the narrower side of its
/// first token, of several the first.
std::vector<size_t> windows_of_words(const std::vector<int64_t>& starts, const std::vector<TokenWindow>& windows) {
  std::vector<size_t> owners;
  for (const auto start : starts) {
    size_t owner = 0;
    int64_t widest = -1;
    for (size_t i = 0; i < windows.size(); ++i) {
      if (start < windows[i].begin || start >= windows[i].end) continue;
      const auto narrower = std::min(start - windows[i].begin, windows[i].end - 1 - start);
      if (narrower > widest) owner = i;
      widest = std::max(widest, narrower);
    }
    owners.push_back(owner);
  }
  return owners;
}

}  // namespace

std::vector<int32_t> word_tokens(const Tokenizer& tokenizer, const std::string& word) {
  if (word.empty()) return {};
  return tokenizer.encode(word, /*inside=*/word[0] != ' ');
}

namespace {

/// The tokens of an item's words, the words that have some, and where each of these begins.
struct WordTokens {
  std::vector<int32_t> ids{};
  std::vector<int64_t> words{}, starts{};
};

WordTokens tokens_of_words(const TaskRowMaker& maker, const TaskItem& item, RowCounts& counts) {
  constexpr size_t listed = 20;
  WordTokens tokens;
  for (size_t i = 0; i < item.words.size(); ++i) {
    const auto of_word = word_tokens(maker.tokenizer(), item.words[i]);
    ++counts.words;
    if (of_word.empty()) {
      ++counts.words_without_token;
      if (counts.listed_words.size() < listed) counts.listed_words.push_back({item.id, static_cast<int64_t>(i)});
      continue;
    }
    counts.cut_words += static_cast<int64_t>(of_word.size()) > maker.room(false);
    tokens.words.push_back(static_cast<int64_t>(i));
    tokens.starts.push_back(static_cast<int64_t>(tokens.ids.size()));
    tokens.ids.insert(tokens.ids.end(), of_word.begin(), of_word.end());
  }
  return tokens;
}

}  // namespace

void add_word_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                   RowCounts& counts) {
  const auto [ids, words, starts] = tokens_of_words(maker, item, counts);
  const auto places = maker.room(false);
  const auto windows =
      word_windows(starts, static_cast<int64_t>(ids.size()), places, step_of(maker.options().truncation, places));
  const auto owners = windows_of_words(starts, windows);
  const auto& gold = item.gold;
  std::vector<bool> is_read(ids.size());
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto& window = windows[w];
    const auto seen = std::span(ids).subspan(static_cast<size_t>(window.begin), static_cast<size_t>(window.size()));
    std::fill(is_read.begin() + window.begin, is_read.begin() + window.end, true);
    auto row = maker.framed(seen, {}, false);
    row.item = number;
    row.window = static_cast<int64_t>(w);
    row.words.assign(row.ids.size(), -1);
    if (gold.is_known()) row.gold = labels_answer(std::vector(row.ids.size(), no_label));
    for (size_t k = 0; k < words.size(); ++k) {
      if (owners[k] != w) continue;
      const auto at = static_cast<size_t>(row.first_begin + starts[k] - window.begin);
      row.words[at] = words[k];
      if (!gold.is_known()) continue;
      const auto label = gold.labels.at(static_cast<size_t>(words[k]));
      row.gold.labels[at] = label >= 0 ? label : no_label;
    }
    rows.push_back(std::move(row));
  }
  counts.first.add(static_cast<int64_t>(ids.size()), std::count(is_read.begin(), is_read.end(), true));
}

std::vector<int64_t> tags_of_words(int64_t words, std::span<const TaskRow> rows,
                                   std::span<const std::vector<int64_t>> tags, int64_t missing) {
  std::vector<int64_t> of_words(static_cast<size_t>(words), missing);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t at = 0; at < rows[r].words.size(); ++at)
      if (const auto word = rows[r].words[at]; word >= 0) of_words[static_cast<size_t>(word)] = tags[r][at];
  return of_words;
}

}  // namespace cloze
