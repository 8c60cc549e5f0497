// Words of rows: every token of a text is of one, however the row was cut.
#include "evaluation/attribution/row_words.h"

#include <set>

#include "tasks/rows/rows.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

std::vector<TaskRow> rows_of(const Tokenizer& tokenizer, const TaskItem& item, const std::string& kind, int64_t length,
                             const Truncation& cut = LongestTruncation{}) {
  std::vector<TaskRow> rows;
  RowCounts counts;
  TaskRowMaker(tokenizer, special_token_template(tokenizer),
               {.kind = kind, .num_labels = 2, .max_length = length, .truncation = cut})
      .add(item, 0, rows, counts);
  return rows;
}

/// `axy@1,2,3 b@4 | a@6`, a bar before the second text.
std::string shown(const std::vector<RowWord>& words) {
  std::string text;
  bool is_second = false;
  for (const auto& word : words) {
    text += text.empty() ? "" : " ";
    if (word.is_second && !is_second) text += "| ";
    is_second = word.is_second;
    text += word.text + "@";
    for (size_t i = 0; i < word.positions.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(word.positions[i]);
  }
  return text;
}

std::string words_in(const Tokenizer& tokenizer, const TaskItem& item, const TaskRow& row, const std::string& kind) {
  return shown(words_of_row(item, row, kind, tokenizer));
}

}  // namespace

TEST_CASE("words are those that the tokenizer cuts a text into, with all their tokens and as they are written",
          "[evaluation][attribution]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto one = text_item("  axy  B.caf\u00E9 zz");
  CHECK(words_in(tokenizer, one, rows_of(tokenizer, one, "classification", 20)[0], "classification") ==
        "axy@1,2,3 B@4 .@5 caf\u00E9@6 zz@7");
  const auto pair = pair_item("axy b", "c, d");
  CHECK(words_in(tokenizer, pair, rows_of(tokenizer, pair, "classification", 20)[0], "classification") ==
        "axy@1,2,3 b@4 | c@6 ,@7 d@8");
}

TEST_CASE("of a text that is cut the row's words are those that are left, at either end and in each window",
          "[evaluation][attribution]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto item = text_item("a b c d e f axy b c");
  const auto cut = [&](const Truncation& truncation) {
    std::vector<std::string> all;
    for (const auto& row : rows_of(tokenizer, item, "classification", 8, truncation))
      all.push_back(words_in(tokenizer, item, row, "classification"));
    return all;
  };
  CHECK(cut(LongestTruncation{}) == std::vector<std::string>{"a@1 b@2 c@3 d@4 e@5 f@6"});
  CHECK(cut(HeadTailTruncation{2}) == std::vector<std::string>{"a@1 b@2 axy@3,4 b@5 c@6"});
  CHECK(cut(Windows{.stride = 3}) ==
        std::vector<std::string>{"a@1 b@2 c@3 d@4 e@5 f@6", "d@1 e@2 f@3 axy@4,5,6", "axy@1,2,3 b@4 c@5"});
}

TEST_CASE("words of tagging are the item's, also in windows that begin with the same words",
          "[evaluation][attribution]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const TaskItem item{.id = "s", .words = {"axy", "", "b", "cy", "b", "cy", "b", "cy", "b"}};
  const auto rows = rows_of(tokenizer, item, "tagging", 8, Windows{.stride = 3});
  std::multiset<std::string> positions;
  for (const auto& row : rows)
    for (const auto& word : words_of_row(item, row, "tagging", tokenizer))
      for (const auto at : word.positions) {
        REQUIRE(at >= row.first_begin);
        REQUIRE(at < row.first_end);
        if (const auto known = row.words[static_cast<size_t>(at)]; known >= 0)
          REQUIRE(word.text == item.words[static_cast<size_t>(known)]);
      }
  CHECK(words_in(tokenizer, item, rows[0], "tagging") == "axy@1,2,3 b@4 cy@5,6");
}

TEST_CASE("the second text of a candidate is the question and the candidate", "[evaluation][attribution]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const TaskItem item{.id = "c", .text = "a b", .second = "c", .is_pair = true, .candidates = {"axy", "d"}};
  const auto rows = rows_of(tokenizer, item, "choice", 20);
  CHECK(words_in(tokenizer, item, rows[0], "choice") == "a@1 b@2 | c@4 axy@5,6,7");
  CHECK(words_in(tokenizer, item, rows[1], "choice") == "a@1 b@2 | c@4 d@5");
}
