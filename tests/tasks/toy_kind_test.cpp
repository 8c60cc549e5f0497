// A kind of task that Cloze does not have, in one class: which of two texts is better.
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/label_names.h"
#include "tasks/scores/predictions.h"
#include "tasks/scores/task_metric.h"
#include "tasks/inspect_task.h"
#include "tasks/kinds/answers.h"
#include "tasks/rows/prepared_task.h"
#include "tasks/task_record.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

/// Two texts, of which the first or the second is better: a row each, and a score for each row.
struct Ranking final : TaskKindRules {
  Ranking()
      : TaskKindRules({.name = "ranking",
                       .form = AnswerForm::label,
                       .head = "choice",
                       .rows_compete = true,
                       .gold_name = "better text",
                       .key = "better",
                       .shares = "scores",
                       .floor_name = "the usual place"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    const auto& text = record.label_text();
    if (text != "first" && text != "second")
      fail<DataError>(record.where(), ": its label is '", text, "'; write which text is better, first or second");
    item.gold = label_answer(text == "second");
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t) const override { return item.gold.label == 0 || item.gold.label == 1; }

  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override {
    for (const int64_t place : {0, 1}) {
      const TaskItem one{.id = item.id, .line = item.line, .text = place == 0 ? item.text : item.second};
      const auto set_target = [&](TaskRow& row) {
        row.candidate = place;
        if (item.gold.is_known()) row.gold = label_answer(item.gold.label == place);
      };
      maker.add_text(one, number, set_target, rows, counts);
    }
  }
  bool has_rows(const TaskItem&, size_t rows) const override { return rows == 2; }
  std::string spelled(const TaskAnswer& answer, const TaskLabels&) const override {
    return answer.label == 0 ? "first" : answer.label == 1 ? "second" : "(unknown)";
  }
  nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item,
                                 const TaskLabels& labels) const override {
    return {{"item", item.id},
            {"better", spelled(made.prediction.answer, labels)},
            {"scores", made.prediction.probabilities}};
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames&, const std::string&) const override {
    return label_answer(value == "first" ? 0 : value == "second" ? 1 : unknown_label);
  }
};

/// The kind, entered among the others once.
AnyTaskKind ranking() {
  static const AnyTaskKind kind = [] {
    add_task_kind(std::make_unique<Ranking>());
    return AnyTaskKind("ranking");
  }();
  return kind;
}

constexpr const char* lines = "id\tone\tother\tbetter\nx\ta b\tc\tfirst\ny\td\te f a\tsecond\nz\tb\tc d\tsecond\n";

Task ranked_texts(const TaskFolder& dir) {
  ranking();
  for (const auto* name : {"train.tsv", "valid.tsv", "test.tsv"}) dir.write(name, lines);
  return dir.open(
      "task: taste\nkind: ranking\n"
      "data: {train: train.tsv, valid: valid.tsv, test: test.tsv, id: id, text: one, second: other, label: better}\n");
}

/// Logits of the rows of an item.
std::vector<RowLogits> scores_of(double first, double second) {
  return {{.values = {first}, .columns = 1}, {.values = {second}, .columns = 1}};
}

}  // namespace

TEST_CASE("a kind of one class is read, checked and refused as any other", "[tasks]") {
  const TaskFolder dir;
  const auto task = ranked_texts(dir);
  REQUIRE(task.train.items.size() == 3);
  CHECK(task.train.items[0].gold == label_answer(0));
  CHECK(task.train.items[1].second == "e f a");
  dir.write("bad.tsv", "one\tother\tbetter\na\tb\tneither\n");
  CHECK(dir.fault("task: taste\nkind: ranking\ndata: {train: bad.tsv, test: bad.tsv, text: one, second: other, label: "
                  "better}\n") == "bad.tsv:2: its label is 'neither'; write which text is better, first or second");
  CHECK_THAT(dir.fault("task: taste\nkind: ranking\nscale: [0, 1]\ndata: {train: bad.tsv, test: bad.tsv, text: one, "
                       "label: better}\n"),
             Catch::Contains("'scale' is given, and 'kind' is ranking"));
  CHECK_THAT(dir.fault("task: taste\nkind: rankin\ndata: {test: bad.tsv}\n"),
             Catch::Contains("did you mean 'ranking'"));
}

TEST_CASE("rows of a kind of one class come back from a prepared folder, a pair as one example", "[tasks]") {
  const TaskFolder dir;
  const auto task = ranked_texts(dir);
  const auto tokenizer = small_wordpiece(dir);
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
  CHECK(made.train_examples == 3);
  const auto split = read_prepared_split(dir / "rows", "test");
  REQUIRE(split.rows.size() == 6);
  CHECK(split.items[1].gold == label_answer(1));
  CHECK((split.rows[2].ids == std::vector<int32_t>{2, 8, 3}));
  CHECK(split.rows[2].gold.label == 0);
  CHECK(split.rows[3].gold.label == 1);
  CHECK(row_groups(ranking(), split.rows).size() == 3);
  CHECK(open_prepared_task(dir / "rows").task.config.kind == ranking());
}

TEST_CASE("predictions of a kind of one class are written, read and scored beside its floor", "[tasks]") {
  const TaskFolder dir;
  const auto task = ranked_texts(dir);
  const auto& items = task.test.items;
  const auto setting = prediction_setting(task.config, task.labels, false);
  std::string written;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto made = predict_item(items[i], {}, scores_of(i == 2 ? 2 : 0, 1), setting);
    CHECK(made.loss == Approx(std::log(1 + std::exp(i == 2 ? 1 : i == 0 ? 1 : -1))));
    written += json_text(ranking()->json_of(made, items[i], task.labels)) + "\n";
  }
  CHECK_THAT(written, Catch::StartsWith("{\"item\":\"x\",\"better\":\"second\",\"scores\":[0.268"));
  const auto read = read_predictions(dir.write("p.jsonl", written), ranking(), items, task.labels).predictions;
  auto scores = metrics_of(ranking(), items, task.labels, read);
  add_floor(ranking(), Floor::constant, items, items, task.labels, {}, scores);
  REQUIRE(scores.scores.size() == 1);
  CHECK(scores.scores[0].value == Approx(1.0 / 3));
  CHECK(scores.scores[0].floors[0].first == "the usual place");
  CHECK(scores.scores[0].floors[0].second == Approx(2.0 / 3));
  CHECK(chosen_metric(task) == "accuracy");
  CHECK_THROWS_WITH(floor_predictions(ranking(), Floor::words, items, items, task.labels),
                    Catch::Contains("a floor of words is one of classification; of ranking"));
}

TEST_CASE("inspect shows the rows of a kind of one class together", "[tasks]") {
  const TaskFolder dir;
  const auto task = ranked_texts(dir);
  const auto tokenizer = small_wordpiece(dir);
  const TaskRowMaker maker(tokenizer, special_token_template(tokenizer), row_options(task.config, task.labels));
  const auto inspection = inspect_task(task, maker, Rng(3), 3);
  const auto found = to_json(inspection, task);
  REQUIRE(found["examples"].size() == 3);
  CHECK(found["examples"][0]["choices"].size() == 2);
  CHECK_THAT(inspection_report(inspection, task, tokenizer),
             Catch::Contains("y, candidate 1: right\n  [CLS] e f a [SEP]"));
}
