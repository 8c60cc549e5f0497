// Minimal pairs and completions in the forms of their publishers, and files that are damaged.
#include "evaluation/suites/ranking.h"

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

std::vector<RankingItem> items_of(const std::string& path) {
  const auto suite = read_ranking(path);
  REQUIRE(suite);
  return suite->items;
}

/// The items of one file with these lines.
std::vector<RankingItem> items_in(const std::string& lines, const std::string& name = "colours.jsonl") {
  const TempDir dir;
  return items_of(dir.write(name, lines));
}

void check_lines_refused(const std::string& lines, const std::string& sentence) {
  const TempDir dir;
  INFO(lines.substr(0, 500));
  CHECK_THROWS_WITH(read_ranking(dir.write("colours.jsonl", lines)), Contains(sentence));
}

const std::string pair_a = R"({"sentence_good": "the owls sleep .", "sentence_bad": "the owls sleeps ."})",
                  pair_b = R"({"sentence_good": "one owl sleeps .", "sentence_bad": "one owl sleep ."})";

}  // namespace

TEST_CASE("minimal pairs take paradigm and phenomenon from their lines, else from the file", "[suites]") {
  const auto named =
      items_in(R"({"sentence_good": "a", "sentence_bad": "b", "field": "syntax", "linguistics_term": "islands", )"
               R"("UID": "deep_island", "pairID": "7"})");
  REQUIRE(named.size() == 1);
  CHECK(named[0] == RankingItem{.name = "deep_island/7",
                                .paradigm = "deep_island",
                                .phenomenon = "islands",
                                .candidates = {{.scored = "a"}, {.scored = "b"}}});
  const auto plain = items_in(pair_a + "\n\n" + pair_b + "\n");
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].name == "colours/0");
  CHECK(plain[1].name == "colours/1");
  CHECK(plain[1].paradigm == "colours");
  CHECK(plain[1].phenomenon.empty());
  const auto zorro =
      items_in(R"({"UID": "island-effects-deep", "pairID": 3, "sentence_good": "a", "sentence_bad": "b"})");
  CHECK(zorro[0].name == "island-effects-deep/3");
  CHECK(zorro[0].phenomenon == "island-effects");
}

TEST_CASE("a folder is a suite of all its JSON lines, each a paradigm", "[suites]") {
  const TempDir dir;
  dir.write("two/b.jsonl", pair_a);
  dir.write("two/a.jsonl", pair_a + "\n" + pair_b);
  dir.write("two/readme.md", "no suite");
  const auto items = items_of(dir / "two");
  REQUIRE(items.size() == 3);
  CHECK(items[0].name == "a/0");
  CHECK(items[2].name == "b/0");
  dir.write("two/c.jsonl", R"({"context": "x", "completions": ["y", "z"], "answer": 0})");
  CHECK_THROWS_WITH(read_ranking(dir / "two"), Contains("c.jsonl:1: is of the form completions, the lines before it"));
}

TEST_CASE("files of a folder that are no items, or have no answers, are left out with a note", "[suites]") {
  const TempDir dir;
  const std::string choice = R"("question": "effect", "premise": "It rained.", "choice1": "a", "choice2": "b")";
  dir.write("copa/a.jsonl", "{" + choice + "}\n");
  dir.write("copa/b.jsonl", "{" + choice + R"(, "label": 1})");
  dir.write("copa/c.jsonl", "{" + choice + R"(, "label": -1})");
  dir.write("copa/summary.jsonl", R"({"model": "gpt2", "accuracy": 0.7})");
  const auto suite = *read_ranking(dir / "copa");
  REQUIRE(suite.items.size() == 1);
  CHECK(suite.items[0].name == "b/0");
  CHECK(suite.notes == std::vector<std::string>{"a.jsonl is left out, for its items have no `label`",
                                                "c.jsonl is left out, for its items have no `label`",
                                                "summary.jsonl is left out, for its lines are no COPA"});
  dir.write("copa/b.jsonl", "{" + choice +
                                R"(, "label": 1})"
                                "\n{" +
                                choice + "}\n");
  CHECK_THROWS_WITH(read_ranking(dir / "copa"), Contains("b.jsonl:2: has no `label`"));
  std::filesystem::remove(dir / "copa/b.jsonl");
  CHECK_THROWS_WITH(read_ranking(dir / "copa"), Contains("a.jsonl:1: has no `label`, the number of the right answer"));
  dir.write("cut/a.jsonl", pair_a);
  dir.write("cut/b.jsonl", pair_b.substr(0, 20));
  CHECK_THROWS_WITH(read_ranking(dir / "cut"), Contains("b.jsonl:1: not a JSON object"));
}

TEST_CASE("files of multiple choice in a folder are splits of one paradigm, not paradigms", "[suites]") {
  const TempDir dir;
  const std::string choice =
      R"({"question": "effect", "premise": "It rained.", "choice1": "a", "choice2": "b", "label": 1})";
  dir.write("copa/train.jsonl", choice + "\n" + choice);
  dir.write("copa/val.jsonl", choice);
  const auto suite = *read_ranking(dir / "copa");
  REQUIRE(suite.items.size() == 3);
  CHECK(suite.items[0].name == "train/0");
  CHECK(suite.items[2].name == "val/0");
  for (const auto& item : suite.items) CHECK(item.paradigm == "copa");
  CHECK(suite.items[1].phenomenon == "train");
  CHECK(suite.items[2].phenomenon == "val");
  CHECK_FALSE(suite.is_official);  // the program of BabyLM has no COPA
  auto first = suite;
  keep_first(first, 1);
  REQUIRE(first.items.size() == 2);
  CHECK(first.items[1].name == "val/0");
  CHECK(read_ranking(dir / "copa/val.jsonl")->items[0].paradigm == "val");
  dir.write("own/a.jsonl", R"({"sentences": ["x", "y"], "answer": 0, "paradigm": "p"})");
  dir.write("own/b.jsonl", R"({"sentences": ["x", "y"], "answer": 0})");
  const auto own = *read_ranking(dir / "own");
  CHECK(own.items[0].paradigm == "p");
  CHECK(own.items[1].paradigm == "own");
  CHECK(read_ranking(dir.write("pairs.jsonl", pair_a))->is_official);
}

TEST_CASE("COMPS scores the property after each prefix", "[suites]") {
  const auto items = items_in(
      R"({"prefix_acceptable": "An owl", "prefix_unacceptable": "A spoon", "property_phrase": "can fly.", "id": 4})",
      "comps_base.jsonl");
  REQUIRE(items.size() == 1);
  CHECK(items[0].name == "comps_base/4");
  CHECK((items[0].candidates ==
         std::vector<Passage>{{.left = "An owl ", .scored = "can fly."}, {.left = "A spoon ", .scored = "can fly."}}));
  CHECK(items[0].phenomenon.empty());
  const auto typed =
      items_in(R"({"prefix_acceptable": "An owl", "prefix_unacceptable": "A spoon", "property_phrase": "can fly.", )"
               R"("negative_sample_type": "random"})");
  CHECK(typed[0].paradigm == "colours");
  CHECK(typed[0].phenomenon == "random");
}

TEST_CASE("a context, a prefix or a question without text is refused by its name", "[suites]") {
  check_lines_refused(R"({"prefix_acceptable": " ", "prefix_unacceptable": "A spoon", "property_phrase": "can fly."})",
                      "colours.jsonl:1: `prefix_acceptable` is empty; give it text, or remove the line");
  check_lines_refused(R"({"prefix_acceptable": "An owl", "prefix_unacceptable": "", "property_phrase": "can fly."})",
                      "colours.jsonl:1: `prefix_unacceptable` is empty");
  check_lines_refused(R"({"prefix_acceptable": "An owl", "prefix_unacceptable": "A spoon", "property_phrase": "\n"})",
                      "colours.jsonl:1: `property_phrase` is empty");
  check_lines_refused(R"({"Domain": "heat", "Context1": "It burns.", "Context2": "", "Target1": "a", "Target2": "b"})",
                      "colours.jsonl:1: `Context2` is empty");
  check_lines_refused(R"({"Domain": "heat", "Context1": "It burns.", "Context2": "c", "Target1": " ", "Target2": "b"})",
                      "colours.jsonl:1: `Target1` is empty");
  check_lines_refused(R"({"subset": "moves", "numops": 2, "input_prefix": "", "options": ["a pin.", "a nut."]})",
                      "colours.jsonl:1: `input_prefix` is empty");
  check_lines_refused(R"({"premise": "", "choice1": "a", "choice2": "b", "question": "cause", "label": 0})",
                      "colours.jsonl:1: `premise` is empty");
  check_lines_refused(R"({"question": {"stem": "", "choices": []}, "answerKey": "A"})",
                      "colours.jsonl:1: `question`: `stem` is empty");
}

TEST_CASE("EWoK compares targets in the first context, and contexts of each target", "[suites]") {
  const auto items =
      items_in(R"({"Domain": "heat", "Context1": "It burns.", "Context2": "It froze.", "Target1": "It is hot.", )"
               R"("Target2": "It is cold."})");
  REQUIRE(items.size() == 3);
  CHECK(items[0].metric == "accuracy");
  CHECK((items[0].candidates == std::vector<Passage>{{.left = "It burns.", .scored = " It is hot."},
                                                     {.left = "It burns.", .scored = " It is cold."}}));
  CHECK(items[1].metric == "context_accuracy");
  CHECK(items[1].candidates[1] == Passage{.left = "It froze.", .scored = " It is hot."});
  CHECK(items[1].answer == 0u);
  CHECK(items[2].candidates[1] == Passage{.left = "It froze.", .scored = " It is cold."});
  CHECK(items[2].answer == 1u);
}

TEST_CASE("entity tracking groups by subset and number of operations, and its first option is right", "[suites]") {
  const auto items =
      items_in(R"({"subset": "moves", "numops": 2, "input_prefix": "Jar 1 holds ", "options": ["a pin.", "a nut.", )"
               R"("a coin."]})");
  REQUIRE(items.size() == 1);
  CHECK(items[0].paradigm == "moves_2_ops");
  CHECK(items[0].phenomenon == "moves");
  CHECK(items[0].candidates.size() == 3);
  CHECK(items[0].candidates[2] == Passage{.left = "Jar 1 holds ", .scored = "a coin."});
  CHECK(items[0].answer == 0u);
}

TEST_CASE("pairs with judgements have the answer that most people prefer, if there is one", "[suites]") {
  const auto items = items_in(
      "{\"sentences\": \"a wugity\\ta wugness\", \"ratio\": 0.75}\n"
      "{\"sentences\": \"a daxity\\ta daxness\", \"ratio\": 0.25}\n"
      "{\"sentences\": \"a fepity\\ta fepness\", \"ratio\": 0.5}\n");
  REQUIRE(items.size() == 3);
  CHECK(items[0].candidates[1] == Passage{.scored = "a wugness"});
  CHECK(items[0].preference == 0.75);
  CHECK(items[0].answer == 0u);
  CHECK(items[1].answer == 1u);
  CHECK_FALSE(items[2].answer);
}

TEST_CASE("COPA becomes one sentence with because or so", "[suites]") {
  const auto items =
      items_in(R"({"premise": "The lamp went out.", "choice1": "The bulb broke.", "choice2": "I read on.", )"
               R"("question": "cause", "label": 0, "idx": 5})"
               "\n"
               R"({"premise": "The lamp went out.", "choice1": "The bulb broke.", "choice2": "I lit a candle.", )"
               R"("question": "effect", "label": 1, "idx": 6})");
  REQUIRE(items.size() == 2);
  CHECK(items[0].candidates[0] == Passage{.left = "The lamp went out because ", .scored = "the bulb broke."});
  CHECK(items[1].candidates[1] == Passage{.left = "The lamp went out so ", .scored = "I lit a candle."});
  CHECK(items[1].answer == 1u);
  CHECK(items[1].name == "colours/6");
}

TEST_CASE("questions with lettered choices are read in both forms of their publishers", "[suites]") {
  const std::string objects =
      R"({"question": "What glows?", "choices": [{"text": "coal", "label": "A"}, {"text": "ice", "label": "B"}], )"
      R"("answerKey": "A"})";
  const std::string lists =
      R"({"question": "What glows?", "choices": {"text": ["coal", "ice"], "label": ["1", "2"]}, "answerKey": "2"})";
  const auto items = items_in(objects + "\n" + lists);
  REQUIRE(items.size() == 2);
  CHECK(items[0].candidates[0] == Passage{.left = "Question: What glows?\nAnswer: ", .scored = "coal"});
  CHECK(items[0].answer == 0u);
  CHECK(items[1].answer == 1u);
  check_lines_refused(R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"})",
                      "colours.jsonl:1: `answerKey` is 'C', which is no label of its choices");
}

TEST_CASE("questions are read in the layout of AI2, whose question holds its choices", "[suites]") {
  const std::string choices = R"("choices": [{"text": "coal", "label": "A"}, {"text": "ice", "label": "B"}])";
  const auto items =
      items_in(R"({"id": "M1", "question": {"stem": "What glows?", )" + choices + R"(}, "answerKey": "B"})");
  REQUIRE(items.size() == 1);
  CHECK(items[0].name == "colours/M1");
  CHECK(items[0].candidates[0] == Passage{.left = "Question: What glows?\nAnswer: ", .scored = "coal"});
  CHECK(items[0].answer == 1u);
  check_lines_refused(R"({"question": {"stem": "q", )" + choices + "}}", "colours.jsonl:1: has no `answerKey`");
  check_lines_refused(R"({"question": {"stem": "q", "choices": 3}, "answerKey": "A"})",
                      "colours.jsonl:1: `question`: `choices` is 3; it must hold texts and labels");
}

TEST_CASE("completions follow their context after one space; sentences stand alone", "[suites]") {
  const auto items =
      items_in(R"({"context": "The sky is", "completions": ["blue", " green"], "answer": 0, "paradigm": "sky", )"
               R"("phenomenon": "air", "id": "x"})");
  CHECK(items[0].name == "sky/x");
  CHECK(items[0].phenomenon == "air");
  CHECK((items[0].candidates ==
         std::vector<Passage>{{.left = "The sky is ", .scored = "blue"}, {.left = "The sky is", .scored = " green"}}));
  const auto sentences = items_in(R"({"sentences": ["a", "b", "c"], "answer": 2})");
  CHECK(sentences[0].candidates[2] == Passage{.scored = "c"});
  CHECK(sentences[0].answer == 2u);
}

TEST_CASE("files of other kinds are left to other readers", "[suites]") {
  const TempDir dir;
  CHECK_FALSE(read_ranking(dir.write("facts.jsonl", R"({"sub_label": "x", "obj_label": "y"})")));
  CHECK_FALSE(read_ranking(dir.write("words.tsv", "a\tb\t1.5\n")));
  CHECK_FALSE(read_ranking(dir.write("broken.jsonl", "{\"sentence_good\"")));
  CHECK_FALSE(read_ranking(dir / "absent"));
  dir.write("folder/notes.txt", "x");
  CHECK_FALSE(read_ranking(dir / "folder"));
}

TEST_CASE("candidates that are the same are kept, counted and named", "[suites]") {
  const TempDir dir;
  const auto path =
      dir.write("colours.jsonl", pair_a + "\n" + R"({"sentence_good": "an owl", "sentence_bad": "an owl"})");
  const auto suite = read_ranking(path);
  CHECK(suite->items.size() == 2);
  REQUIRE(notes_of(*suite).size() == 1);
  CHECK(notes_of(*suite)[0] ==
        "1 of 2 items have candidates that are the same, first colours/1 (" + path + ":2); they count as ties");
  const auto options =
      read_ranking(dir.write("options.jsonl", R"({"context": "x", "completions": ["y", "z", "y"], "answer": 1})"));
  CHECK(notes_of(*options).size() == 1);
  auto limited = *suite;
  keep_first(limited, 1);
  CHECK(notes_of(limited).empty());
}

TEST_CASE("damaged and doubtful lines are refused with their place", "[suites]") {
  check_lines_refused(pair_a + "\n" + pair_b.substr(0, 40),
                      "colours.jsonl:2: not a JSON object (column 41: the text ends in the middle); the file is cut "
                      "off, get it again");
  check_lines_refused(pair_a + "\n[1]\n", "colours.jsonl:2: not a JSON object; JSON lines have one object per line");
  check_lines_refused(R"({"sentence_good": "a", "sentence_bad": " \t"})", "colours.jsonl:1: `sentence_bad` is empty");
  check_lines_refused(R"({"sentence_good": "a"})", "colours.jsonl:1: has no `sentence_bad`");
  check_lines_refused(R"({"sentence_good": "a", "sentence_bad": 3})",
                      "colours.jsonl:1: `sentence_bad` is 3; it must be a text");
  check_lines_refused(pair_a + "\n" + R"({"text": "x"})",
                      "colours.jsonl:2: has no `sentence_good`; the suite is one of minimal pairs");
  check_lines_refused(pair_a + "\n" + R"({"context": "x", "completions": ["y", "z"], "answer": 0})",
                      "colours.jsonl:2: is of the form completions, the lines before it are of minimal pairs");
  check_lines_refused(R"({"UID": "u", "pairID": "1", "sentence_good": "a", "sentence_bad": "b"})"
                      "\n"
                      R"({"UID": "u", "pairID": "1", "sentence_good": "c", "sentence_bad": "d"})",
                      "colours.jsonl:2: the item 'u/1' is there twice, first in ");
  check_lines_refused(R"({"context": " ", "completions": ["y", "z"], "answer": 0})",
                      "colours.jsonl:1: `context` is empty; give it text, or remove the line");
  check_lines_refused(R"({"UID": "", "sentence_good": "a", "sentence_bad": "b"})",
                      "colours.jsonl:1: `UID` is empty; give it text, or remove the line");
  check_lines_refused(R"({"sentences": ["y", "z"], "answer": 0, "paradigm": ""})",
                      "colours.jsonl:1: `paradigm` is empty");
  check_lines_refused(R"({"context": "x", "completions": ["y", "z"], "answer": 2})",
                      "`answer` is 2; it must be the number of the right answer, from 0 to 1");
  check_lines_refused(R"({"context": "x", "completions": ["y", "z"], "answer": "1"})",
                      "`answer` is '1'; it must be an integer");
  check_lines_refused(R"({"context": "x", "completions": ["y"], "answer": 0})",
                      "`completions` has 1 texts; an item needs two");
  check_lines_refused(R"({"context": "x", "completions": ["y", 4], "answer": 0})",
                      "`completions` holds 4; it must be a list");
  check_lines_refused(R"({"sentences": "one", "ratio": 0.5})", "it must be two sentences with a tab between them");
  check_lines_refused(R"({"sentences": "a\tb", "ratio": 1.5})",
                      "`ratio` is 1.5; it must be a share of people, from 0 to 1");
  check_lines_refused(R"({"premise": "p", "choice1": "a", "choice2": "b", "question": "cause"})",
                      "has no `label`, the number of the right answer; test splits without answers cannot be scored");
  check_lines_refused(std::string("{\"sentence_good\": \"a\0b\"", 23), "a NUL byte: the file looks binary");
  check_lines_refused(pair_a + "\n{\"sentence_good\": \"" + std::string(30 << 20, 'x') + "\"}",
                      "colours.jsonl:2: the line is longer than 16 MB");
}

TEST_CASE("the first items of each paradigm are kept, or those that a table names", "[suites]") {
  std::string lines;
  for (const char* uid : {"a", "b"})
    for (const char* id : {"0", "1", "2"})
      lines += std::string(R"({"UID": ")") + uid + R"(", "pairID": ")" + id +
               R"(", "sentence_good": "x", "sentence_bad": "y"})" + "\n";
  const TempDir dir;
  auto suite = *read_ranking(dir.write("pairs.jsonl", lines));
  keep_first(suite, 2);
  REQUIRE(suite.items.size() == 4);
  CHECK(suite.items[3].name == "b/1");
  keep_named(suite, dir.write("ids.tsv", "UID\tpairID\na\t1\nb\t0\n"));
  REQUIRE(suite.items.size() == 2);
  CHECK(suite.items[0].name == "a/1");
  CHECK_THROWS_WITH(keep_named(suite, dir.write("other.tsv", "UID\tpairID\nc\t1\n")),
                    Contains("other.tsv:2: the suite has no item 'c/1'"));
  CHECK_THROWS_WITH(keep_named(suite, dir.write("head.tsv", "a\t1\n")),
                    Contains("does not begin with the columns UID and pairID"));
  CHECK_THROWS_WITH(keep_named(suite, dir.write("none.tsv", "UID\tpairID\n")), Contains("names no item"));
}
