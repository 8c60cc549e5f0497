// Suites that are declared in YAML.
#include "evaluation/suites/declared_suite.h"

#include "core/error.h"
#include "evaluation/suites/suite.h"
#include "tests/inference/scoring/random_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// The items of a declaration, whose lines stand in items.jsonl.
std::vector<RankingItem> declared_items(const std::string& yaml, const std::string& lines) {
  const TempDir dir;
  dir.write("items.jsonl", lines);
  return read_declared(dir.write("owls.yaml", "items: items.jsonl\n" + yaml))->items;
}

template <class E>
void check_declaration_refused(const std::string& yaml, const std::string& lines, const std::string& sentence) {
  INFO(yaml);
  CHECK_THROWS_AS(declared_items(yaml, lines), E);
  CHECK_THROWS_WITH(declared_items(yaml, lines), Contains(sentence));
}

const std::string owls = R"({"start": "the owls", "good": "sleep", "bad": "sleeps", "kind": "number", "n": 2})",
                  pair_of_owls = "passages: ['{start} {good} .', '{start} {bad} .']\n";

}  // namespace

TEST_CASE("a declared suite makes passages of the fields of its lines", "[suites][declared]") {
  const auto items =
      declared_items(pair_of_owls + "paradigm: '{kind}-{n}'\nphenomenon: '{kind}'\n", owls + "\n" + owls);
  REQUIRE(items.size() == 2);
  CHECK((items[0] == RankingItem{.name = "number-2/0",
                                 .paradigm = "number-2",
                                 .phenomenon = "number",
                                 .candidates = {{.scored = "the owls sleep ."}, {.scored = "the owls sleeps ."}}}));
  CHECK(items[1].name == "number-2/1");
  CHECK(declared_items("passages: ['{{{good}}}', 'x']\n", owls)[0].candidates[0].scored == "{sleep}");
}

TEST_CASE("a declared suite has its own name, else that of its file, which is the paradigm of its items",
          "[suites][declared]") {
  const TempDir dir;
  dir.write("parts/items.jsonl", owls);
  const auto plain = open_suite(dir.write("owls.yaml", "items: parts/items.jsonl\n" + pair_of_owls));
  CHECK(plain.name == "owls");
  CHECK(std::get<RankingSuite>(plain.items).items[0].paradigm == "owls");
  CHECK_FALSE(std::get<RankingSuite>(plain.items).is_official);
  CHECK(open_suite(dir.write("b.yaml", "suite: birds\nitems: parts/items.jsonl\n" + pair_of_owls)).name == "birds");
}

TEST_CASE("a context is read and not scored: one for all passages, or one for each", "[suites][declared]") {
  const auto one = declared_items("context: '{start}'\npassages: ['{good}', '{bad}']\nright: 1\n", owls);
  CHECK((one[0].candidates ==
         std::vector<Passage>{{.left = "the owls ", .scored = "sleep"}, {.left = "the owls ", .scored = "sleeps"}}));
  CHECK(one[0].answer == 1);
  const auto each = declared_items("context: ['{good}', '{bad}']\npassages: ['{start}', '{start}']\n", owls);
  CHECK(each[0].candidates[1].text() == "sleeps the owls");
}

TEST_CASE("a field may hold the list of passages, and the right one by its number or its text", "[suites][declared]") {
  const std::string line = R"({"q": "2 + 2 =", "options": ["3", "4", "5"], "label": 1, "solution": "5"})",
                    yaml = "context: '{q}'\npassages: '{options}'\nright: ";
  const auto by_number = declared_items(yaml + "label\n", line), by_text = declared_items(yaml + "solution\n", line);
  REQUIRE(by_number[0].candidates.size() == 3);
  CHECK(by_number[0].answer == 1);
  CHECK(by_text[0].answer == 2);
}

TEST_CASE("judgements of people are correlated by a declared suite of pairs", "[suites][declared]") {
  const auto items = declared_items("passages: ['{a}', '{b}']\nright: people\nmetric: spearman\n",
                                    R"({"a": "an owl", "b": "a owl", "people": 0.25})");
  CHECK(items[0].preference == 0.25);
  CHECK(items[0].answer == 1);
}

TEST_CASE("a run is evaluated on a declared suite as on lines of the same sentences", "[suites][declared]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  dir.write("items.jsonl", R"({"s": "the cats", "good": "see", "bad": "sees"})");
  const auto declared =
      open_suite(dir.write("cats.yaml", "items: items.jsonl\npassages: ['{s} {good} a dog', '{s} {bad} a dog']\n"));
  const auto plain = open_suite(
      dir.write("pairs.jsonl", R"({"sentences": ["the cats see a dog", "the cats sees a dog"], "answer": 0})"));
  CHECK(run_suite(run, declared, {}).items[0]["candidates"] == run_suite(run, plain, {}).items[0]["candidates"]);
}

TEST_CASE("mistakes in a declaration are refused with the file, those of lines with their place",
          "[suites][declared][bad]") {
  check_declaration_refused<ConfigError>("passage: ['{good}', '{bad}']\n", owls, "passage");
  check_declaration_refused<ConfigError>("", owls, "owls.yaml: has no `passages`; write their patterns");
  check_declaration_refused<ConfigError>("passages: ['{good', '{bad}']\n", owls,
                                         "owls.yaml: the pattern '{good' has a brace without a field");
  check_declaration_refused<ConfigError>(pair_of_owls + "metric: f1\n", owls,
                                         "'metric' is 'f1', must be one of accuracy, spearman");
  check_declaration_refused<ConfigError>(pair_of_owls + "metric: spearman\n", owls,
                                         "needs the field with the fraction of people");
  check_declaration_refused<DataError>("passages: ['{good}', '{worse}']\n", owls, "items.jsonl:1: has no `worse`");
  check_declaration_refused<DataError>("passages: ['{good}']\n", owls, "items.jsonl:1: has 1 passages; an item needs");
  check_declaration_refused<DataError>(pair_of_owls + "right: 2\n", owls,
                                       "items.jsonl:1: has 2 passages, and `right` is 2, counted from 0");
  check_declaration_refused<DataError>(pair_of_owls + "right: kind\n", owls,
                                       "items.jsonl:1: `kind` is 'number', which is none of its passages");
  check_declaration_refused<DataError>(pair_of_owls + "context: ['a', 'b', 'c']\n", owls,
                                       "2 passages and 3 contexts; give one context, or one for each passage");
  check_declaration_refused<DataError>("passages: ['{good}', '{bad}']\n", R"({"good": "sleep", "bad": " "})",
                                       "items.jsonl:1: passage 1 is empty");
  check_declaration_refused<DataError>("passages: ['{a}', '{good}']\n", R"({"a": ["x"], "good": {}})",
                                       "`good` is an object; it must be a text or a number");
  check_declaration_refused<DataError>("passages: '{list}'\nright: a\nmetric: spearman\n",
                                       R"({"list": ["x", "y", "z"], "a": 0.5})", "the metric spearman compares pairs");
  const TempDir dir;
  const auto lost = dir.write("lost.yaml", "items: none.jsonl\n" + pair_of_owls);
  CHECK_THROWS_AS(open_suite(lost), ConfigError);
  CHECK_THROWS_WITH(open_suite(lost), Contains("none.jsonl, and there is no such file"));
  CHECK_THROWS_WITH(open_suite(dir.write("empty.yaml", pair_of_owls)), Contains("empty.yaml: has no `items`"));
}

TEST_CASE("a pattern that unfolds a field to more than a passage can be is refused", "[suites][declared][bad]") {
  std::string many;
  for (int i = 0; i < 20; ++i) many += "{start}";
  const auto line = R"({"start": ")" + std::string(1 << 20, 'a') + R"(", "bad": "sleeps"})";
  check_declaration_refused<DataError>("passages: ['" + many + "', '{bad}']\n", line,
                                       "items.jsonl:1: a pattern of 20 fields makes a text of more than 16 MiB; name "
                                       "fewer fields");
}
