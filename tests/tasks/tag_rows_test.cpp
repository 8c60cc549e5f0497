// Words with tags: every word has one prediction, from the window that reads it best.
#include <algorithm>

#include "tasks/kinds/tagging/rows.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

struct TaggedRows {
  std::vector<TaskRow> rows{};
  RowCounts counts{};
};

TaggedRows tagged(const Tokenizer& tokenizer, const TaskItem& item, int64_t length,
                  const Truncation& cut = LongestTruncation{}) {
  TaggedRows rows;
  TaskRowMaker(tokenizer, special_token_template(tokenizer),
               {.kind = "tagging", .max_length = length, .truncation = cut})
      .add(item, 0, rows.rows, rows.counts);
  return rows;
}

/// Tags that a model which knows all of them would give, by position.
std::vector<std::vector<int64_t>> looked_up(const std::vector<TaskRow>& rows, int64_t other) {
  std::vector<std::vector<int64_t>> tags;
  for (const auto& row : rows) {
    tags.emplace_back(row.ids.size(), other);
    for (size_t i = 0; i < row.ids.size(); ++i)
      if (row.gold.labels[i] != no_label) tags.back()[i] = row.gold.labels[i];
  }
  return tags;
}

}  // namespace

TEST_CASE("the first token of a word has its tag, and a word without a token shifts no other tag", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const TaskItem item{
      .id = "s", .words = {"axy", "", "b", "\u200B", "\u00A0", "cy"}, .gold = labels_answer({1, 2, 3, 4, 5, 6})};
  const auto found = tagged(tokenizer, item, 20);
  REQUIRE(found.rows.size() == 1);
  const auto& row = found.rows[0];
  CHECK((row.ids == std::vector<int32_t>{2, 5, 11, 12, 6, 7, 12, 3}));
  CHECK((row.words == std::vector<int64_t>{-1, 0, -1, -1, 2, 5, -1, -1}));
  CHECK((row.gold.labels == std::vector<int64_t>{no_label, 1, no_label, no_label, 3, 6, no_label, no_label}));
  CHECK(found.counts.words == 6);
  CHECK(found.counts.words_without_token == 3);
  REQUIRE(found.counts.listed_words.size() == 3);
  CHECK(found.counts.listed_words[1].item == "s");
  CHECK(found.counts.listed_words[1].word == 3);
  CHECK((tags_of_words(6, found.rows, looked_up(found.rows, 0), 9) == std::vector<int64_t>{1, 9, 3, 9, 9, 6}));
  CHECK(tagged(tokenizer, {.id = "e", .words = {"", ""}}, 20).rows.at(0).ids == std::vector<int32_t>{2, 3});
}

TEST_CASE("a text of a thousand words has all of its tags, each once, whatever the length of a row", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  TaskItem item{.id = "long"};
  TaskAnswer gold = labels_answer({});
  const std::vector<std::string> kinds{"a", "bxy", "cx", "dyyxx", "", "e"};
  for (int64_t i = 0; i < 1000; ++i) {
    item.words.push_back(kinds[static_cast<size_t>(i * i + i / 7) % kinds.size()]);
    gold.labels.push_back(i % 5);
  }
  item.gold = gold;
  for (const int64_t length : {8, 13, 64, 512, 5000})
    for (const Truncation& cut : {Truncation(LongestTruncation{}), Truncation(Windows{.stride = 3})}) {
      const auto found = tagged(tokenizer, item, length, cut);
      std::vector<int> times(1000);
      for (const auto& row : found.rows) {
        CHECK(static_cast<int64_t>(row.ids.size()) <= length);
        for (const auto word : row.words)
          if (word >= 0) ++times[static_cast<size_t>(word)];
      }
      const auto tags = tags_of_words(1000, found.rows, looked_up(found.rows, -7), -1);
      for (size_t i = 0; i < 1000; ++i) {
        CHECK(times[i] == (item.words[i].empty() ? 0 : 1));
        CHECK(tags[i] == (item.words[i].empty() ? -1 : gold.labels[i]));
      }
      CHECK(found.counts.first.cut_tokens == 0);
    }
}

TEST_CASE("a word is read in the window with the most context on its narrower side", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  TaskItem item{.id = "w", .words = {"a", "b", "c", "d", "e", "f", "a", "b"}};
  const auto found = tagged(tokenizer, item, 8, Windows{.stride = 2});  // tokens 0 to 5 and 2 to 7
  REQUIRE(found.rows.size() == 2);
  CHECK((found.rows[0].words == std::vector<int64_t>{-1, 0, 1, 2, 3, -1, -1, -1}));
  CHECK((found.rows[1].words == std::vector<int64_t>{-1, -1, -1, 4, 5, 6, 7, -1}));
}

TEST_CASE("a word that is longer than a row keeps its tag, and is counted", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const TaskItem item{.id = "w", .words = {"b", "axyxyxyxy", "c"}, .gold = labels_answer({1, 2, 3})};
  const auto found = tagged(tokenizer, item, 7);
  CHECK((tags_of_words(3, found.rows, looked_up(found.rows, 0), 9) == std::vector<int64_t>{1, 2, 3}));
  CHECK(found.counts.cut_words == 1);
  CHECK(found.counts.first.cut_tokens == 4);
}
