// Rows of texts and of candidates, and the order of an epoch.
#include "tasks/rows/rows.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "tasks/rows/epoch_order.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

using Ids = std::vector<int32_t>;

struct MadeRows {
  std::vector<TaskRow> rows{};
  RowCounts counts{};
};

MadeRows made(const Tokenizer& tokenizer, const RowOptions& options, const TaskItem& item) {
  MadeRows rows;
  TaskRowMaker(tokenizer, special_token_template(tokenizer), options).add(item, 7, rows.rows, rows.counts);
  return rows;
}

}  // namespace

TEST_CASE("a text that is too long is cut, and what is cut is counted by part", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto item = pair_item("a b c d e", "f e d", label_answer(1));
  auto found = made(tokenizer, {.max_length = 9}, item);
  CHECK((found.rows.at(0).ids == Ids{2, 5, 6, 7, 3, 10, 9, 8, 3}));
  CHECK(found.rows[0].gold.label == 1);
  CHECK(found.rows[0].item == 7);
  CHECK(found.counts.first.cut_texts == 1);
  CHECK(found.counts.first.cut_tokens == 2);
  CHECK(found.counts.first.tokens == 5);
  CHECK(found.counts.second.cut_texts == 0);
  CHECK(found.counts.lengths.at(9) == 1);
  found = made(tokenizer, {.max_length = 9, .truncation = SecondTruncation{}}, item);
  CHECK((found.rows.at(0).ids == Ids{2, 5, 6, 7, 8, 9, 3, 10, 3}));
  CHECK(found.counts.second.cut_tokens == 2);
  found =
      made(tokenizer, {.max_length = 6, .truncation = HeadTailTruncation{.head_tail = 1}}, text_item("a b c d e f"));
  CHECK((found.rows.at(0).ids == Ids{2, 5, 8, 9, 10, 3}));
  CHECK(found.counts.first.cut_tokens == 2);
  CHECK(made(tokenizer, {.max_length = 9}, text_item("")).counts.first.empty == 1);
  CHECK(made(tokenizer, {.max_length = 9}, text_item("a", label_answer(unknown_label))).rows[0].gold.label ==
        unknown_label);
  CHECK_THROWS_WITH(made(tokenizer, {.max_length = 4}, item),
                    Catch::Contains("a row of 4 tokens has no room for two texts beside 3 special tokens"));
}

TEST_CASE("an item whose text has more windows than anybody reads is refused by its name", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  std::string text;
  for (int i = 0; i < 25'000; ++i) text += "a ";
  TaskItem item{.id = "long", .line = 3, .text = text};
  CHECK_THROWS_WITH(made(tokenizer, {.max_length = 7, .truncation = Windows{.stride = 1}}, item),
                    "item long (line 3): a text of 25000 tokens has more than 20000 windows; raise `stride` or "
                    "`max_length`, or divide the text");
}

TEST_CASE("windows of a text have all of it, and of a pair all of the longer one beside the shorter", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const RowOptions options{.max_length = 7, .truncation = Windows{.stride = 2}};
  auto found = made(tokenizer, options, text_item("a b c d e f a b", label_answer(0)));
  REQUIRE(found.rows.size() == 3);
  CHECK((found.rows[0].ids == Ids{2, 5, 6, 7, 8, 9, 3}));
  CHECK((found.rows[1].ids == Ids{2, 7, 8, 9, 10, 5, 3}));
  CHECK((found.rows[2].ids == Ids{2, 9, 10, 5, 6, 3}));
  for (size_t i = 0; i < found.rows.size(); ++i) {
    CHECK(found.rows[i].window == static_cast<int64_t>(i));
    CHECK(found.rows[i].gold.label == 0);
  }
  CHECK(found.counts.items_in_windows == 1);
  CHECK(found.counts.first.cut_tokens == 0);
  found = made(tokenizer, options, pair_item("a b c d", "e f a b c d"));
  for (const auto& row : found.rows) CHECK((std::equal(row.ids.begin(), row.ids.begin() + 4, Ids{2, 5, 6, 3}.begin())));
  CHECK(found.counts.first.cut_tokens == 2);
  CHECK(found.counts.second.cut_tokens == 0);
}

TEST_CASE("numbers are targets of regression, and several labels a vector", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto number = made(tokenizer, {.kind = "regression", .max_length = 9}, text_item("a", value_answer(3)));
  CHECK(number.rows[0].gold.value == 3);
  CHECK(number.rows[0].gold.label == unknown_label);
  const RowOptions options{.kind = "multilabel", .num_labels = 4, .max_length = 9};
  CHECK((made(tokenizer, options, text_item("a", labels_answer({1, 3}))).rows[0].gold.labels ==
         std::vector<int64_t>{0, 1, 0, 1}));
  CHECK((made(tokenizer, options, text_item("a", labels_answer({}))).rows[0].gold.labels ==
         std::vector<int64_t>{0, 0, 0, 0}));
  CHECK(made(tokenizer, options, text_item("a")).rows[0].gold.labels.empty());
}

TEST_CASE("each candidate is a row, and the premise is cut alike in all of them", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  TaskItem item{.id = "c", .text = "a b c d e", .second = "f", .candidates = {"a", "b c"}, .gold = label_answer(1)};
  const RowOptions options{.kind = "choice", .max_length = 9};
  const auto found = made(tokenizer, options, item);
  REQUIRE(found.rows.size() == 2);
  CHECK((found.rows[0].ids == Ids{2, 5, 6, 7, 3, 10, 5, 3}));
  CHECK((found.rows[1].ids == Ids{2, 5, 6, 7, 3, 10, 6, 7, 3}));
  CHECK(found.rows[0].gold.label == 0);
  CHECK(found.rows[1].gold.label == 1);
  CHECK(found.rows[1].candidate == 1);
  CHECK(found.counts.first.cut_tokens == 2);
  CHECK((row_groups("choice", found.rows) == std::vector<RowGroup>{{0, 2}}));
  CHECK((row_groups("spans", found.rows) == std::vector<RowGroup>{{0, 1}, {1, 1}}));
  item.candidates.clear();
  CHECK_THROWS_WITH(made(tokenizer, options, item), Catch::Contains("item c (line 0) has no candidates"));
}

TEST_CASE("an epoch is a permutation of all items, another one in each epoch, and for each seed", "[tasks]") {
  const auto epoch = [](uint64_t seed, uint64_t number) {
    std::vector<uint64_t> items;
    for (uint64_t i = 0; i < 101; ++i) items.push_back(item_at(Rng(seed), 101, number * 101 + i));
    return items;
  };
  const auto first = epoch(1, 0);
  CHECK(std::set<uint64_t>(first.begin(), first.end()).size() == 101);
  CHECK(*std::max_element(first.begin(), first.end()) == 100);
  CHECK(first == epoch(1, 0));
  CHECK(first != epoch(1, 1));
  CHECK(first != epoch(2, 0));
  CHECK(item_at(Rng(1), 1, 5) == 0);
}
