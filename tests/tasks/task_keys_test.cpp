// Keys of a task file, and what they change.
#include "tasks/scores/floors.h"
#include "tasks/scores/item_prediction.h"
#include "tasks/scores/task_metric.h"
#include "tasks/inspect_task.h"
#include "tasks/rows/prepared_task.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

Task opened_mood(const TaskFolder& dir, const std::string& keys) {
  dir.write("train.tsv", "text\tlabel\na\tx\nb\ty\nc\tx\n");
  return dir.open(mood_task +
                  "data: {train: train.tsv, valid: train.tsv, test: train.tsv, text: text, label: label}\n" + keys);
}

}  // namespace

TEST_CASE("the first figure that `metric` names chooses, else the first one of the kind", "[tasks]") {
  const TaskFolder dir;
  CHECK(chosen_metric(opened_mood(dir, "")) == "accuracy");
  CHECK(chosen_metric(opened_mood(dir, "metric: [f1_macro, accuracy]\n")) == "f1_macro");
  const auto wrong = opened_mood(dir, "metric: [accuracy, f7]\n");
  CHECK_THROWS_WITH(chosen_metric(wrong), Catch::Contains("'metric' is f7, and the figures of its valid part are "));
}

TEST_CASE("F1 chooses for tags that mark phrases, and accuracy for others", "[tasks]") {
  const TaskFolder dir;
  dir.write("t.conll", "a B-X\nb O\n\nc O\nd B-X\n");
  const std::string task = "task: t\nkind: tagging\ndata: {train: t.conll, valid: t.conll, test: t.conll";
  CHECK(chosen_metric(dir.open(task + ", scheme: bio}")) == "f1");
  dir.write("t.conll", "a NOUN\nb VERB\n\nc NOUN\n");
  CHECK(chosen_metric(dir.open(task + "}")) == "accuracy");
}

TEST_CASE("strict figures read tags by `data.scheme`, also where the letters look like those of another", "[tasks]") {
  Task task;
  task.config.kind = "tagging";
  task.labels = {.names = {"O", "B-X", "I-X"}, .written = {"O", "B-X", "I-X"}};
  TaskItem sentence{.words = {"a", "b", "c"}, .gold = labels_answer({1, 2, 0})};
  const TaskPrediction same{.answer = {.labels = {1, 2, 0}}};
  const auto strict = [&](TagScheme scheme) {
    task.config.data.scheme = scheme;
    TaskScores scores;
    scores.scores = values_of(task.config.kind, {sentence}, task.labels, {same}, metric_options(task));
    return score_of(scores, "f1_strict")->value;
  };
  CHECK(strict(TagScheme::none) == 1);
  CHECK(strict(TagScheme::bio) == 1);
  CHECK(strict(TagScheme::bioes) == 0);  // no E ends the phrase
  CHECK(metric_options(task).scheme == TagScheme::bioes);
}

TEST_CASE("figures of answers have the same names for all parts, also where questions of one alone have none",
          "[tasks]") {
  const TaskFolder dir;
  const std::string context = "\"context\": \"the sea\", \"answers\": ";
  const auto answered = "{\"question\": \"q\", " + context + "[{\"text\": \"sea\", \"answer_start\": 4}]}\n";
  const auto without = "{\"question\": \"r\", " + context + "[]}\n";
  dir.write("all.jsonl", answered);
  dir.write("some.jsonl", answered + without);
  const auto names = [&](const std::string& train, const std::string& valid, const std::string& test) {
    const auto task = dir.open("task: t\nkind: spans\ndata: {train: " + train + ", valid: " + valid +
                               ", test: " + test + ", text: question, second: context, answers: answers}");
    const auto tokenizer = small_wordpiece(dir);
    prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
    const auto prepared = open_prepared_task(dir / "rows").task;
    std::string all = metric_names(task).front();
    for (const auto& split : {"valid", "test"}) {
      const auto items = read_prepared_split(dir / "rows", split).items;
      const auto constant = constant_predictions("spans", items, {});
      all += " " + values_of("spans", items, {}, constant, metric_options(prepared)).front().metric;
    }
    return all;
  };
  CHECK(names("all.jsonl", "all.jsonl", "all.jsonl") == "exact_match exact_match exact_match");
  CHECK(names("some.jsonl", "all.jsonl", "all.jsonl") == "exact exact exact");
  CHECK(names("all.jsonl", "all.jsonl", "some.jsonl") == "exact exact exact");
  CHECK(names("all.jsonl", "some.jsonl", "all.jsonl") == "exact exact exact");
}

TEST_CASE("`max_length` and `max_question` bound rows, and `max_answer` answers", "[tasks]") {
  TaskFolder dir;
  Task task;
  task.config.kind = "spans";
  task.config.truncation = Windows{.stride = 2};
  task.config.max_length = 9;
  task.config.max_question = 2;
  task.config.max_answer = 5;
  const auto tokenizer = small_wordpiece(dir);
  const TaskRowMaker maker(tokenizer, special_token_template(tokenizer), row_options(task.config, task.labels));
  TaskItem question{.text = "a b c d", .second = "a b c d e f a b", .is_pair = true, .gold = spans_answer({{"a", 0}})};
  std::vector<TaskRow> rows;
  RowCounts counts;
  maker.add(question, 0, rows, counts);
  REQUIRE(rows.size() > 1);
  for (const auto& row : rows) {
    CHECK(row.ids.size() <= 9);
    CHECK(row.first_end - row.first_begin == 2);
  }
  CHECK(prediction_setting(task.config, task.labels, false).answers.max_answer_length == 5);
}
