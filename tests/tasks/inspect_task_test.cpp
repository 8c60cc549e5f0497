// What `inspect task` prints: rows in the order of training, and counts by part.
#include "tasks/inspect_task.h"

#include <nlohmann/json.hpp>

#include "tasks/rows/epoch_order.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;
using nlohmann::json;

namespace {

Task sentiment_task() {
  Task task{.labels = {.names = {"no", "yes"}, .written = {"0", "1"}}};
  task.config.task = "mood";
  task.config.max_length = 6;
  task.train.name = "train";
  task.test.name = "test";
  const std::vector<std::string> texts{"a", "b c", "a b c d e f", "d", "e f"};
  for (size_t i = 0; i < texts.size(); ++i) {
    auto item = text_item(texts[i], label_answer(static_cast<int64_t>(i % 2)));
    item.id = "train:" + std::to_string(i);
    task.train.items.push_back(item);
  }
  task.test.items = {text_item("a", label_answer(unknown_label))};
  return task;
}

TaskInspection inspected(const Task& task, const Tokenizer& tokenizer, int64_t examples) {
  const TaskRowMaker maker(tokenizer, special_token_template(tokenizer), row_options(task.config, task.labels));
  return inspect_task(task, maker, Rng(3), examples);
}

}  // namespace

TEST_CASE("examples come in the order of training, epoch after epoch, and counts by part", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto task = sentiment_task();
  const auto found = json::parse(to_json(inspected(task, tokenizer, 7), task).dump());
  REQUIRE(found["examples"].size() == 7);
  for (uint64_t i = 0; i < 7; ++i) {
    const auto number = item_at(Rng(3), 5, i);
    const auto& one = found["examples"][i];
    CHECK(one["item"] == "train:" + std::to_string(number));
    CHECK(one["label"] == number % 2);
    CHECK(one["attention_mask"].size() == one["input_ids"].size());
    CHECK(one["token_type_ids"].size() == one["input_ids"].size());
    CHECK(!one.contains("window"));
  }
  const auto& train = found["counts"]["train"];
  CHECK(train["items"] == 5);
  CHECK(train["first"]["cut_texts"] == 1);
  CHECK(train["first"]["cut_tokens"] == 2);
  CHECK(train["lengths"]["median"] == 4);
  CHECK(train["lengths"]["longest"] == 6);
  CHECK((train["labels"] == json{{"no", 3}, {"yes", 2}}));
  CHECK(found["counts"]["test"]["unknown_labels"] == 1);
  CHECK(!found["counts"].contains("valid"));
  const auto text = inspection_report(inspected(task, tokenizer, 1), task, tokenizer);
  CHECK_THAT(text, Catch::Contains("3 (60 %)"));
  CHECK_THAT(text, Catch::Contains("train: 1 of 5 first texts cut, 2 of 12 tokens"));
  CHECK_THAT(text, Catch::Contains("[CLS]") && !Catch::Contains("\nnotes\n"));
}

TEST_CASE("what is noted of a task stands below a heading of its own, not among what is cut", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  auto task = sentiment_task();
  task.notes = {"2 of 5 items of test stand in train too"};
  CHECK_THAT(inspection_report(inspected(task, tokenizer, 1), task, tokenizer),
             Catch::Contains("\n\nnotes\n  2 of 5 items of test stand in train too\n\n"));
}

TEST_CASE("a choice has its candidates together, answers their places and tags their labels", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  Task task{.labels = {}};
  task.config.max_length = 30;
  task.train.name = "train";
  task.config.kind = "choice";
  task.train.items = {{.id = "c", .text = "a", .candidates = {"b", "c", "d"}, .gold = label_answer(2)}};
  auto one = to_json(inspected(task, tokenizer, 1), task)["examples"][0];
  CHECK(one["choices"].size() == 3);
  CHECK(one["label"] == 2);
  CHECK((one["choices"][1]["input_ids"] == std::vector<int>{2, 5, 3, 7, 3}));
  task.config.kind = "spans";
  task.train.items = {pair_item("a", "b cafe c", spans_answer({{"cafe", 2}}))};
  one = to_json(inspected(task, tokenizer, 1), task)["examples"][0];
  CHECK(one["start"] == 4);
  CHECK(one["end"] == 4);
  CHECK_THAT(inspection_report(inspected(task, tokenizer, 1), task, tokenizer),
             Catch::Contains("'cafe', tokens 4 to 4"));
  task.config.kind = "tagging";
  task.labels = {.names = {"O", "B-x"}, .written = {"O", "B-x"}};
  task.train.items = {{.id = "w", .words = {"axy", "b"}, .gold = labels_answer({1, 0})}};
  one = to_json(inspected(task, tokenizer, 1), task)["examples"][0];
  CHECK((one["labels"] == std::vector<int64_t>{no_label, 1, no_label, no_label, 0, no_label}));
  CHECK_THAT(inspection_report(inspected(task, tokenizer, 1), task, tokenizer), Catch::Contains("a/B-x ##x ##y b/O"));
}
