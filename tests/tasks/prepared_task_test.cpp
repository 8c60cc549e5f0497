// A task with its rows in a folder.
#include "tasks/rows/prepared_task.h"

#include <filesystem>

#include "core/error.h"
#include "data/store/token_store.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

/// Lines of a table with a text of so many words and a label.
std::string table_of_texts(int items, int shift) {
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < items; ++i) {
    for (int k = 0; k <= (i + shift) % 4; ++k) lines += std::string(k > 0 ? " " : "") + "abcdef"[(i + k + shift) % 6];
    lines += i % 2 == 0 ? "\tno, never\n" : "\tyes\n";
  }
  return lines;
}

/// Three parts of texts with two labels.
Task texts_task(const TaskFolder& dir) {
  dir.write("train.tsv", table_of_texts(9, 0));
  dir.write("valid.tsv", table_of_texts(4, 1));
  dir.write("test.tsv", table_of_texts(5, 2));
  return dir.open(
      "task: moods\nkind: classification\nlabels: {\"no, never\": \"no: never\", yes: yes}\n"
      "data: {train: train.tsv, valid: valid.tsv, test: test.tsv, text: text, label: label}\n");
}

/// Rows as they are made, without a folder.
std::vector<TaskRow> fresh_rows(const std::vector<TaskItem>& items, const Tokenizer& tokenizer,
                                const RowOptions& options) {
  const TaskRowMaker maker(tokenizer, special_token_template(tokenizer), options);
  std::vector<TaskRow> rows;
  RowCounts counts;
  for (size_t i = 0; i < items.size(); ++i) maker.add(items[i], static_cast<int64_t>(i), rows, counts);
  return rows;
}

bool are_equal(const TaskRow& a, const TaskRow& b) {
  const auto facts = [](const TaskRow& r) {
    return std::tie(r.item, r.window, r.candidate, r.ids, r.segments, r.class_token, r.first_begin, r.first_end,
                    r.second_begin, r.second_end, r.words, r.bytes, r.gold);
  };
  return facts(a) == facts(b);
}

bool are_equal(const TaskItem& a, const TaskItem& b) {
  const auto facts = [](const TaskItem& i) {
    return std::tie(i.id, i.line, i.group, i.text, i.second, i.is_pair, i.words, i.candidates, i.gold);
  };
  return facts(a) == facts(b);
}

/// A task of this kind with the same items in all parts.
Task task_of_items(AnyTaskKind kind, std::vector<TaskItem> items) {
  Task task{.file = "task.yaml"};
  task.config.task = "made";
  task.config.kind = kind;
  task.config.max_length = 12;
  if (kind->reads_windows) task.config.truncation = Windows{.stride = 2};
  if (kind->learns_labels) task.labels = {.names = {"A", "B", "C"}, .written = {"a", "b", "c"}};
  for (size_t i = 0; i < items.size(); ++i) items[i].id = "item " + std::to_string(i);
  task.train.name = "train", task.valid.name = "valid", task.test.name = "test";
  task.train.items = task.valid.items = task.test.items = items;
  return task;
}

void check_comes_back(const Task& task) {
  TempDir dir;
  INFO(name_of(task.config.kind));
  const auto tokenizer = small_wordpiece(dir);
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
  const auto expected = fresh_rows(task.valid.items, tokenizer,
                                   {.kind = task.config.kind,
                                    .num_labels = task.labels.size(),
                                    .max_length = 12,
                                    .truncation = task.config.truncation});
  const auto part = read_prepared_split(dir / "rows", "valid");
  REQUIRE(part.items.size() == task.valid.items.size());
  for (size_t i = 0; i < part.items.size(); ++i) CHECK(are_equal(part.items[i], task.valid.items[i]));
  REQUIRE(part.rows.size() == expected.size());
  for (size_t r = 0; r < expected.size(); ++r) CHECK(are_equal(part.rows[r], expected[r]));
  CHECK(made.valid_examples == count_examples(task.config.kind, expected));
}

}  // namespace

TEST_CASE("a prepared task is prepared text whose documents are the rows, and knows its task", "[tasks]") {
  const TaskFolder dir;
  const auto task = texts_task(dir);
  const auto tokenizer = small_wordpiece(dir);
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
  CHECK(made.train_examples == 9);
  CHECK(made.valid_examples == 4);
  CHECK(made.longest == 6);
  const TokenStore store(dir / "rows", "train");
  store.verify();
  CHECK(store.num_documents() == 9);
  CHECK(store.fingerprint() == made.fingerprint);
  CHECK(is_prepared_task(dir / "rows"));
  const auto opened = open_prepared_task(dir / "rows");
  CHECK(opened.task.config.task == "moods");
  CHECK(opened.task.file == dir / "task.yaml");
  CHECK((opened.task.labels.names == std::vector<std::string>{"no: never", "yes"}));
  CHECK((opened.task.labels.written == std::vector<std::string>{"no, never", "yes"}));
  CHECK(opened.task.config.labels.items.at(0).second.text == "no: never");
  CHECK(opened.fingerprint == made.fingerprint);
  CHECK(opened.longest == 6);
  const auto test = read_prepared_split(dir / "rows", "test");
  REQUIRE(test.items.size() == 5);
  CHECK(are_equal(test.items[3], task.test.items[3]));
}

TEST_CASE("rows and items of every kind come back as they were made", "[tasks]") {
  auto pair = pair_item("a b c", "d e", label_answer(2));
  pair.group = "g";
  check_comes_back(task_of_items("classification", {pair, text_item("f", label_answer(unknown_label))}));
  check_comes_back(task_of_items(
      "multilabel", {text_item("a b", labels_answer({0, 2})), text_item("c", labels_answer({})), pair_item("a", "")}));
  check_comes_back(task_of_items("regression", {text_item("a", value_answer(0.1)), text_item("b", value_answer(-3))}));
  TaskItem tagged{.words = {"a", "", "b", "c", "d", "e", "f", "a", "b", "c", "d", "e", "f", "a"}};
  tagged.gold = labels_answer({0, 1, 2, unknown_label, 0, 0, 1, 1, 2, 2, 0, 1, 2, 0});
  check_comes_back(task_of_items("tagging", {tagged, TaskItem{.words = {"f"}, .gold = labels_answer({1})}}));
  TaskItem question{.text = "a b", .second = "c d e f a b c d e f", .is_pair = true};
  auto unanswered = question;
  question.gold = spans_answer({{"f a", 6}});
  unanswered.gold = spans_answer({});
  check_comes_back(task_of_items("spans", {question, unanswered}));
  TaskItem choice{.text = "a", .candidates = {"b", "c d", "e"}, .gold = label_answer(1)};
  TaskItem two{.text = "f", .candidates = {"a", "b"}, .gold = label_answer(0)};
  check_comes_back(task_of_items("choice", {choice, two}));
}

TEST_CASE("a damaged prepared task is refused with what to do, and prepared text is none", "[tasks]") {
  const TaskFolder dir;
  const auto task = texts_task(dir);
  const auto tokenizer = small_wordpiece(dir);
  prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
  const auto file = dir / "rows/valid.jsonl";
  const auto content = read_file(file);
  auto changed = content;
  changed[changed.find("yes") == std::string::npos ? 10 : changed.find("\"label\"") + 9] ^= 1;
  dir.write("rows/valid.jsonl", changed);
  CHECK_THROWS_WITH(read_prepared_split(dir / "rows", "valid"),
                    Catch::Contains("valid.jsonl: its content does not match its checksum; restore it, or fine-tune "
                                    "again in another folder"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(read_prepared_split(dir / "rows", "valid"), Catch::Contains("; restore it, or fine-tune again"));
  CHECK(read_prepared_split(dir / "rows", "test").items.size() == 5);
  CHECK_THROWS_WITH(open_prepared_task(dir / "none"), Catch::Contains("no such folder"));
  CHECK_FALSE(is_prepared_task(dir / "none"));
}

TEST_CASE("the same task, lengths and tokenizer give the same fingerprint, and others another", "[tasks]") {
  const TaskFolder dir;
  auto task = texts_task(dir);
  const auto tokenizer = small_wordpiece(dir);
  const auto row_template = special_token_template(tokenizer);
  const auto first = prepare_task(task, tokenizer, row_template, dir / "a").fingerprint;
  CHECK(prepare_task(task, tokenizer, row_template, dir / "b").fingerprint == first);
  CHECK(prepare_task(task, tokenizer, row_template, dir / "a").fingerprint == first);  // over what stands there
  task.config.max_length = 5;
  const auto cut = prepare_task(task, tokenizer, row_template, dir / "c");
  CHECK(cut.fingerprint != first);
  CHECK_THAT(truncation_note("train", cut.counts.at(0).second),
             Catch::StartsWith("train: 2 of 9 texts are cut, by 2 tokens"));
}
