// Which scores explain what is predicted, by kind of task.
#include "evaluation/attribution/explained_items.h"

#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A task of a kind with its items, rows and predictions.
struct Case {
  Case(const std::string& kind, const std::vector<std::string>& labels) {
    task.task.config.task = "toy";
    task.task.config.kind = kind;
    task.task.labels = {.names = labels, .written = labels};
    tokenizer = small_wordpiece(dir);
  }
  void add(const TaskItem& item, const TaskAnswer& answer, std::vector<double> probabilities = {}, int64_t length = 20,
           const Truncation& cut = LongestTruncation{}) {
    RowCounts counts;
    TaskRowMaker(tokenizer, special_token_template(tokenizer),
                 {.kind = task.task.config.kind, .num_labels = 3, .max_length = length, .truncation = cut})
        .add(item, std::ssize(items), rows, counts);
    items.push_back(item);
    predictions.push_back({.prediction = {.answer = answer, .probabilities = std::move(probabilities)}});
  }
  ExplainedItems explained(const std::string& label = "") const {
    return explained_items(task, items, rows, predictions, label, tokenizer);
  }
  /// `row,token,column PART=LABEL` of each.
  std::vector<std::string> shown(const std::string& label = "") const {
    const auto [scores, explained_scores] = explained(label);
    std::vector<std::string> all;
    for (size_t s = 0; s < scores.size(); ++s)
      all.push_back(concat(scores[s].row, ",", scores[s].token, ",", scores[s].column, " ", explained_scores[s].part,
                           "=", explained_scores[s].label));
    return all;
  }
  TempDir dir{};
  JudgedTask task{};
  Tokenizer tokenizer{};
  std::vector<TaskItem> items{};
  std::vector<TaskRow> rows{};
  std::vector<ItemPrediction> predictions{};
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the label that is predicted is explained, or the one that is asked for, in each window",
          "[evaluation][attribution]") {
  Case of("classification", {"bad", "fair", "good"});
  of.add(text_item("a b"), label_answer(2));
  of.add(text_item("a b c d e f a b"), label_answer(0), {}, 8, Windows{.stride = 2});
  CHECK(of.shown() == Texts{"0,-1,2 =good", "1,-1,0 window 1=bad", "2,-1,0 window 2=bad"});
  CHECK(of.shown("fair") == Texts{"0,-1,1 =fair", "1,-1,1 window 1=fair", "2,-1,1 window 2=fair"});
  CHECK_THROWS_WITH(of.explained("great"), "--label great: the task toy lacks it; its labels are bad, fair, good");
}

TEST_CASE("of several labels each that is predicted is explained, and of none the likeliest",
          "[evaluation][attribution]") {
  Case of("multilabel", {"x", "y", "z"});
  of.add(text_item("a"), labels_answer({0, 2}), {0.9, 0.1, 0.8});
  of.add(text_item("b"), labels_answer({}), {0.1, 0.3, 0.2});
  CHECK(of.shown() == Texts{"0,-1,0 =x", "0,-1,2 =z", "1,-1,1 =y"});
  CHECK(of.explained().scores[0].among == ProbabilityAmong::itself);
}

TEST_CASE("a value and a candidate are explained, and candidates are asked for by number",
          "[evaluation][attribution]") {
  Case value("regression", {});
  value.add(text_item("a"), value_answer(1.5));
  CHECK(value.shown() == Texts{"0,-1,0 ="});
  CHECK_THROWS_WITH(value.explained("x"),
                    "--label x: the task toy is of regression, which has no labels; leave it out");
  Case choice("choice", {});
  choice.add({.id = "c", .text = "a", .candidates = {"b", "c"}}, label_answer(1));
  CHECK(choice.shown() == Texts{"1,-1,0 =1"});
  CHECK(choice.shown("0") == Texts{"0,-1,0 =0"});
  CHECK_THROWS_WITH(choice.explained("2"), "--label 2: item c has the candidates 0 to 1");
  CHECK_THROWS_WITH(choice.explained("b"), "--label b: a candidate is named by its number, from 0 on");
}

TEST_CASE("tags but O are explained at the first token of their words", "[evaluation][attribution]") {
  Case of("tagging", {"O", "PER"});
  of.add({.id = "s", .words = {"axy", "b", "cy"}}, labels_answer({1, 0, 1}), {}, 20, Windows{});
  CHECK(of.shown() == Texts{"0,1,1 axy, word 1=PER", "0,5,1 cy, word 3=PER"});
  CHECK(of.shown("O") == Texts{"0,4,0 b, word 2=O"});
  of.items[0].gold = labels_answer({1, 0, 0});
  const auto explained = of.explained().explained;
  CHECK(explained[0].predicted == "PER");
  CHECK(explained[0].gold == "PER");
  CHECK(explained[1].gold == "O");
}

TEST_CASE("an answer is explained by its first and its last token in the first window that has all of it",
          "[evaluation][attribution]") {
  Case of("spans", {});
  of.add(pair_item("a", "b c d axy e f c"), spans_answer({{.text = "axy e", .begin = 6}}), {}, 9, Windows{.stride = 3});
  of.add(pair_item("a", "b"), spans_answer({}), {}, 9, Windows{.stride = 2});
  const auto& with_answer = of.rows[1];  // c d axy e is cut from the first window
  const auto scores = of.explained().scores;
  REQUIRE(scores.size() == 4);
  CHECK(scores[0].row == scores[1].row);
  const auto& row = of.rows[scores[0].row];
  CHECK(with_answer.item == row.item);
  CHECK(row.bytes[static_cast<size_t>(scores[0].token)][0] == 6);
  CHECK(row.bytes[static_cast<size_t>(scores[1].token)][1] == 11);
  CHECK(scores[0].column == 0);
  CHECK(scores[1].column == 1);
  for (size_t before = 0; before < scores[0].row; ++before)  // no earlier window has all of it
    CHECK((of.rows[before].bytes[static_cast<size_t>(of.rows[before].second_begin)][0] > 6 ||
           of.rows[before].bytes[static_cast<size_t>(of.rows[before].second_end - 1)][1] < 11));
  CHECK(scores[2].token == of.rows.back().class_token);
  CHECK(of.explained().explained[3].label == "(no answer)");
}

TEST_CASE("a text is an item of the task that a run has, with a tab before its second text",
          "[evaluation][attribution]") {
  Case one("classification", {"bad", "good"});
  CHECK(item_of_text("a b", one.task.task).text == "a b");
  CHECK_THROWS_WITH(item_of_text("a\tb", one.task.task),
                    "the task toy has one text, and 2 texts are given; write no tab in it");
  one.task.task.config.data.second = "other";
  const auto pair = item_of_text("a b\tc", one.task.task);
  CHECK(pair.is_pair);
  CHECK(pair.second == "c");
  CHECK_THROWS_WITH(item_of_text("a b", one.task.task),
                    "the task toy has two texts, and 1 text is given; write a tab between them");
  CHECK_THROWS_WITH(item_of_text("a\t ", one.task.task), "the text is empty; write some words");
  const Case tags("tagging", {"O"});
  CHECK(item_of_text(" axy  b ", tags.task.task).words == Texts{"axy", "b"});
  CHECK_THROWS_WITH(item_of_text(" ", tags.task.task), "the text is empty; write some words");
  const Case choice("choice", {});
  CHECK_THROWS_WITH(item_of_text("a", choice.task.task),
                    "the task toy is a choice, whose candidates a text does not have; name a file of items");
  CHECK(item_of_text("a\tb", Case("spans", {}).task.task).second == "b");
}

TEST_CASE("a baseline that the tokenizer lacks is refused with the one that it has", "[evaluation][attribution]") {
  TempDir dir;
  CHECK(baseline_id(BaselineToken::pad, small_wordpiece(dir)) == 0);
  CHECK(baseline_id(BaselineToken::mask, small_wordpiece(dir)) == 4);
  dir.write("none/vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
  CHECK_THROWS_WITH(baseline_id(BaselineToken::pad, Tokenizer::open(dir / "none")),
                    "--baseline pad: the tokenizer of the run lacks that token; name a run whose tokenizer has a token "
                    "of padding");
  dir.write("few/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  CHECK_THROWS_WITH(baseline_id(BaselineToken::mask, Tokenizer::open(dir / "few")),
                    "--baseline mask: the tokenizer of the run lacks that token; choose --baseline pad");
}

TEST_CASE("the tokens of a text that is generated are explained but for special ones", "[evaluation][attribution]") {
  Case of("generation", {});
  of.add({.id = "g", .text = "a b", .gold = texts_answer({"axy c"})}, texts_answer({"axy c"}));
  const auto scores = of.explained().scores;
  REQUIRE(scores.size() == 4);
  for (const auto& score : scores) CHECK(of.rows[0].target.at(static_cast<size_t>(score.token)) == score.column);
  CHECK(scores[0].column == 5);
  CHECK(scores[3].column == 7);
}

TEST_CASE("an item without words has nothing to explain", "[evaluation][attribution]") {
  Case of("classification", {"bad", "good"});
  of.add(text_item("\u200B"), label_answer(1));
  CHECK_THROWS_WITH(of.explained(), "item t: has no words to explain; remove it, or write some");
}
