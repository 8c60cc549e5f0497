// Sources and their references: files, rows, predictions and figures.
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/text_metrics.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/item_prediction.h"
#include "tasks/scores/predictions.h"
#include "tasks/scores/task_metric.h"
#include "tasks/inspect_task.h"
#include "tasks/rows/prepared_task.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

const std::string generation_keys = "task: gist\nkind: generation\n";

/// A task of JSON lines, all parts of one file.
Task open_gists(const TaskFolder& dir, const std::string& lines,
                const std::string& columns = "text: source, label: target", const std::string& keys = "") {
  dir.write("t.jsonl", lines);
  return dir.open(generation_keys + "data: {train: t.jsonl, valid: test, test: t.jsonl, " + columns + "}\n" + keys);
}

std::string fault_of_gists(const TaskFolder& dir, const std::string& lines, const std::string& columns,
                           const std::string& keys = "") {
  dir.write("t.jsonl", lines);
  return dir.fault(generation_keys + "data: {train: t.jsonl, valid: test, test: t.jsonl, " + columns + "}\n" + keys);
}

/// The row of an item by the small tokenizer, with a special-token template.
TaskRow row_of(const TaskFolder& dir, const TaskItem& item, const RowOptions& options,
               const SpecialTokenTemplate& row_template, RowCounts& counts) {
  const TaskRowMaker maker(small_wordpiece(dir), row_template, options);
  std::vector<TaskRow> rows;
  maker.add(item, 0, rows, counts);
  REQUIRE(rows.size() == 1);
  return rows.front();
}

const SpecialTokenTemplate of_encoder_decoder{.before = {2}, .between = {3}, .after = {3}, .max_length = 20, .end = 3};
const SpecialTokenTemplate of_decoder{.max_length = 20, .joins_target = true, .end = 3};
TaskItem gist(std::string source, std::vector<std::string> references) {
  return text_item(std::move(source), texts_answer(std::move(references)));
}

}  // namespace

TEST_CASE("a source may be a list of sentences, and has the references of a list or of several columns", "[tasks]") {
  const TaskFolder dir;
  const auto listed = open_gists(dir, "{\"source\": [\"a b\", \"c\"], \"target\": [\" a\", \"b\"]}\n");
  CHECK(listed.test.items[0].text == "a b c");
  CHECK((listed.test.items[0].gold.texts == std::vector<std::string>{" a", "b"}));
  const auto columns = open_gists(dir, "{\"d\": \"a\", \"s1\": \"b\", \"s2\": \"c\"}\n{\"d\": \"b\", \"s\": \"x\"}\n",
                                  "text: \"say: {d}\", label: [s, s1, s2]");
  CHECK(columns.test.items[0].text == "say: a");
  CHECK((columns.test.items[0].gold.texts == std::vector<std::string>{"b", "c"}));
  CHECK((columns.test.items[1].gold.texts == std::vector<std::string>{"x"}));
  CHECK(columns.labels.names.empty());
}

TEST_CASE("files of lines that stand side by side are sources and targets", "[tasks]") {
  const TaskFolder dir;
  dir.write("x.en", "a \"b\ncat\n");
  dir.write("x.de", "b\nKatze\n");
  const auto task = dir.open(
      generation_keys + "data: {train: x.en + x.de, valid: test, test: x.en + x.de, format: tsv, text: 0, label: 1}");
  CHECK(task.test.items[0].text == "a \"b");
  CHECK(task.test.items[1].gold.texts.front() == "Katze");
}

TEST_CASE("a line without a reference is refused with its place, or left out", "[tasks]") {
  const TaskFolder dir;
  const std::string lines = "{\"s\": \"a\", \"t\": \"b\"}\n{\"s\": \"b\", \"t\": null}\n";
  CHECK(fault_of_gists(dir, lines, "text: s, label: t") ==
        "t.jsonl:2: has no reference in 't'; give it one, or leave such items out with --skip-bad");
  CHECK_THAT(fault_of_gists(dir, "{\"s\": \"a\", \"t\": []}\n", "text: s, label: [t, u]"),
             Catch::Contains("has no reference in 't' or the others"));
  CHECK_THAT(fault_of_gists(dir, "{\"s\": \"a\", \"t\": [\"b\", \" \"]}\n", "text: s, label: t"),
             Catch::Contains("'t' has an empty text in its list"));
  dir.write("t.jsonl", lines);
  const auto kept = dir.open(
      generation_keys + "data: {train: t.jsonl, valid: test, test: t.jsonl, text: s, label: t}\n", {.skip_bad = true});
  CHECK(kept.test.items.size() == 1);
  CHECK_THAT(notes_of(kept), Catch::Contains("/t.jsonl:2: has no reference in 't'"));
}

TEST_CASE("an empty source is counted with its place", "[tasks]") {
  const TaskFolder dir;
  const auto task =
      open_gists(dir, "{\"s\": \"a\", \"t\": \"b\"}\n{\"s\": \" \", \"t\": \"b\"}\n", "text: s, label: t");
  CHECK_THAT(notes_of(task), Catch::Contains("/t.jsonl:2; all of them count"));
}

TEST_CASE("what a generation does not have is refused in its task file", "[tasks]") {
  const TaskFolder dir;
  const std::string line = "{\"s\": \"a\", \"t\": \"b\"}\n";
  const auto fault = [&](const std::string& keys) { return fault_of_gists(dir, line, "text: s, label: t", keys); };
  CHECK_THAT(fault("cut: windows\n"), Catch::Contains("whose source is one row; write first or head_tail"));
  CHECK_THAT(fault("labels: {a: b, c: d}\n"), Catch::Contains("'kind' is generation, which has none"));
  CHECK_THAT(fault("max_target: 1\n"), Catch::Contains("'max_target' is 1, which the end token takes"));
  CHECK_THAT(fault("max_target: 8\ndecoding: {min_new_tokens: 8}\n"),
             Catch::Contains("'decoding.min_new_tokens' is 8, and texts have at most 8 tokens"));
  CHECK_THAT(fault("decoding: {beams: 2}\n"),
             Catch::Contains("unknown key 'decoding.beams'; did you mean 'decoding.num_beams'?"));
  CHECK_THAT(fault_of_gists(dir, line, "text: s, second: t, label: t"), Catch::Contains("join columns by a template"));
  CHECK_THAT(dir.fault(mood_task + "max_target: 8\ndata: {train: t.jsonl, test: t.jsonl, text: s, label: t}\n"),
             Catch::Contains("'max_target' is given, and 'kind' is classification; targets are of generation"));
}

TEST_CASE("a row has the framed source and, framed too, its first reference", "[tasks]") {
  const TaskFolder dir;
  RowCounts counts;
  const auto row = row_of(dir, gist("a b", {"c d", "e"}), {.kind = "generation"}, of_encoder_decoder, counts);
  CHECK((row.ids == std::vector<int32_t>{2, 5, 6, 3}));
  CHECK((row.target == std::vector<int32_t>{2, 7, 8, 3}));
}

TEST_CASE("in a decoder the end token stands between source and target, which share its positions", "[tasks]") {
  const TaskFolder dir;
  RowCounts counts;
  const RowOptions options{.kind = "generation", .max_target = 4, .most_new = 6};
  const auto row = row_of(dir, gist("a b", {"c d"}), options, of_decoder, counts);
  CHECK((row.ids == std::vector<int32_t>{5, 6, 3}));
  CHECK((row.target == std::vector<int32_t>{7, 8, 3}));
  const auto full = row_of(dir, gist(repeated("a ", 30), {"c"}), options, of_decoder, counts);
  CHECK(full.ids.size() == 14);  // 20 positions less 6 new tokens
  auto without_end = of_decoder;
  without_end.end = -1;
  CHECK_THROWS_WITH(row_of(dir, gist("a", {"b"}), options, without_end, counts),
                    Catch::Contains("tells a source from its target by the token that ends a text"));
  CHECK_THROWS_WITH(row_of(dir, gist("a", {"b"}), {.kind = "generation", .most_new = 16}, of_decoder, counts),
                    Catch::Contains("none are left for a source"));
}

TEST_CASE("a target that is cut keeps its end token, or stops in its midst", "[tasks]") {
  const TaskFolder dir;
  RowCounts counts;
  RowOptions options{.kind = "generation", .max_target = 4};
  const auto item = gist("a", {"a b c d"});
  CHECK((row_of(dir, item, options, of_encoder_decoder, counts).target == std::vector<int32_t>{2, 5, 6, 3}));
  options.end_of_cut = false;
  CHECK((row_of(dir, item, options, of_encoder_decoder, counts).target == std::vector<int32_t>{2, 5, 6, 7}));
  CHECK(counts.second.cut_texts == 2);
  CHECK(counts.second.cut_tokens == 4);
}

TEST_CASE("sources and references come back from a prepared folder", "[tasks]") {
  const TaskFolder dir;
  const auto task = open_gists(dir, "{\"source\": \"a b\", \"target\": [\"c\", \"d\"]}\n",
                               "text: source, label: target", "max_target: 9\ndecoding: {num_beams: 3}\n");
  const auto made = prepare_task(task, small_wordpiece(dir), of_encoder_decoder, dir / "rows");
  CHECK(made.longest == 4);
  const auto part = read_prepared_split(dir / "rows", "test");
  CHECK((part.items[0].gold == texts_answer({"c", "d"})));
  CHECK((part.rows[0].target == std::vector<int32_t>{2, 7, 3}));
  const auto config = open_prepared_task(dir / "rows").task.config;
  CHECK(config.decoding.num_beams == 3);
  CHECK(most_new_tokens(config) == 9);
}

TEST_CASE("texts are scored as sacrebleu, rouge_score and SQuAD's program score them, each by its best reference",
          "[tasks]") {
  const std::vector<TaskItem> items{gist("x", {"the mill turned slowly", "An old mill"}), gist("y", {"rain fell"})};
  const std::vector<std::string> texts{"The old mill turned", "rain fell"};
  std::vector<TaskPrediction> predictions;
  TextSums sums;
  for (size_t i = 0; i < 2; ++i) {
    predictions.push_back({.answer = texts_answer({texts[i]}), .loss = i == 0 ? 1.0 : 4.0, .count = i == 0 ? 2 : 1});
    sums.add(text_sums(texts[i], items[i].gold.texts));
  }
  const auto scores = metrics_of("generation", items, {}, predictions);
  const auto value = [&](const char* name) { return score_of(scores, name)->value; };
  CHECK(value("bleu") == Approx(bleu(sums).score / 100));
  CHECK(value("chrf") == Approx(chrf(sums) / 100));
  CHECK(value("rouge1") == Approx((0.75 + 1) / 2));
  CHECK(value("rougeL") == Approx(rouge(sums).rougeL));
  CHECK(value("exact_match") == 0.5);
  CHECK(value("f1") == Approx((0.8 + 1) / 2));  // "old mill turned", "mill turned slowly" and "old mill"
  CHECK(value("loss") == Approx(2));            // over three tokens
  CHECK(score_of(scores, "rougeL")->interval.has_value());
  CHECK(scores.signatures.front().second == bleu_signature(0));
}

TEST_CASE("the floor is the beginning of each source without what all begin with, as long as the references are",
          "[tasks]") {
  const std::vector<TaskItem> items{gist("sum up: one two three", {"a b"}), gist("sum up: four", {"a b c"}),
                                    gist("sum up: five six seven", {"a"})};
  const auto floor = constant_predictions("generation", items, {});
  CHECK(floor[0].answer.texts.front() == "one two");
  CHECK(floor[1].answer.texts.front() == "four");
  CHECK(floor[2].answer.texts.front() == "five six");
  CHECK(name_of_floor("generation", Floor::constant) == "lead");
}

TEST_CASE("generated texts are written and read as lines of JSON, with their losses, or as lines", "[tasks]") {
  const TaskFolder dir;
  const std::vector<TaskItem> items{{.id = "x", .gold = texts_answer({"a b"})},
                                    {.id = "y", .gold = texts_answer({"c"})}};
  const AnyTaskKind kind("generation");
  const ItemPrediction made{.prediction = {.id = "x", .answer = texts_answer({"a\nb"})}, .loss = 0.5, .count = 3};
  const auto line = json_text(kind->json_of(made, items[0], {}));
  CHECK(line == "{\"item\":\"x\",\"text\":\"a\\nb\",\"loss\":0.5,\"tokens\":3}");
  const auto path = dir.write("p.jsonl", line + "\n{\"item\": \"y\", \"text\": \"c\"}\n");
  const auto read = read_predictions(path, kind, items, {}).predictions;
  CHECK(read[0].answer.texts.front() == "a\nb");
  CHECK(read[0].count == 3);
  CHECK(read[1].count == 0);
  const auto lines = read_predictions(dir.write("p.txt", "first text\nsecond\n"), kind, items, {}).predictions;
  CHECK(lines[0].answer.texts.front() == "first text");
  CHECK_THROWS_WITH(read_predictions(dir.write("q.jsonl", "{\"item\": \"x\", \"text\": 3}\n"), kind, items, {}),
                    Catch::Contains("3 is no text"));
}

TEST_CASE("ROUGE-L chooses where a task names nothing; a loss that is less is better", "[tasks]") {
  const TaskFolder dir;
  const auto task = open_gists(dir, "{\"source\": \"a b\", \"target\": \"c\"}\n");
  CHECK(chosen_metric(task) == "rougeL");
  CHECK(is_error("loss"));
}

TEST_CASE("inspect shows what is cut of sources and of targets, and the target of a row", "[tasks]") {
  const TaskFolder dir;
  const auto task = open_gists(dir, "{\"source\": \"a b c d e\", \"target\": \"a b c\"}\n",
                               "text: source, label: target", "max_length: 5\nmax_target: 4\n");
  const auto tokenizer = small_wordpiece(dir);
  const TaskRowMaker maker(tokenizer, of_encoder_decoder, row_options(task.config, task.labels));
  const auto inspection = inspect_task(task, maker, Rng(1), 1);
  const auto report = inspection_report(inspection, task, tokenizer);
  CHECK_THAT(report, Catch::Contains("train: 1 of 1 source cut, 2 of 5 tokens"));
  CHECK_THAT(report, Catch::Contains("train: 1 of 1 target cut, 1 of 5 tokens"));
  CHECK_THAT(report, Catch::Contains("'a b c'"));
  CHECK(to_json(inspection, task)["examples"][0]["labels"] == nlohmann::json({2, 5, 6, 3}));
}
