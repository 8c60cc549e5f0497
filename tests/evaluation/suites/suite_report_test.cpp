// Tables and lines of scores that no model gave.
#include "evaluation/suites/suite_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace cloze;
using nlohmann::json;
using Row = std::vector<std::string>;

namespace {

SuiteResult pairs(double accuracy, double official) {
  return {.suite = "pairs",
          .scored_by = "pll",
          .scores =
              {{.metric = "accuracy",
                .value = accuracy,
                .interval = Bounds{0.25, 0.75},
                .official = official,
                .count = 1200,
                .ties = 3},
               {.metric = "micro_accuracy", .value = accuracy + 0.01, .count = 1200, .ties = 3},
               {.level = SuiteLevel::phenomenon, .group = "islands", .metric = "accuracy", .value = 0.5, .count = 800},
               {.level = SuiteLevel::phenomenon, .group = "binding", .metric = "accuracy", .value = 0.75, .count = 400},
               {.level = SuiteLevel::paradigm, .group = "deep", .metric = "accuracy", .value = 0.125, .count = 800},
               {.level = SuiteLevel::paradigm, .group = "near", .metric = "accuracy", .value = 0.875, .count = 400}},
          .items = {json{{"item", "deep/0"}, {"choice", 1}}, json{{"item", "near/0"}, {"choice", 0}}},
          .notes = {"1 of 1,200 items have candidates that are the same"}};
}

SuiteResult similarity(double value) {
  return {
      .suite = "similarity",
      .scored_by = "cosine",
      .scores = {{.metric = "spearman", .value = value, .count = 50},
                 {.level = SuiteLevel::paradigm, .group = "words", .metric = "spearman", .value = value, .count = 50}},
      .items = {}};
}

CheckpointResults answers_of(const std::string& run, int64_t step, std::vector<SuiteResult> results) {
  return {.run = run, .checkpoint = run + "/step", .step = step, .results = std::move(results)};
}

}  // namespace

TEST_CASE("the table of a run has the columns that its figures fill, and groups as narrow as asked for", "[suites]") {
  const std::vector one{answers_of("runs/a", 10, {pairs(0.5, 0.625), similarity(0.3)})};
  const auto suites = table_of_runs(one, SuiteDetail::suites);
  CHECK(suites.title == "Suites evaluated on runs/a");
  CHECK(heads_of(suites) == Row{"suite", "metric", "value", "95 % interval", "official", "ties", "items"});
  REQUIRE(suites.rows.size() == 3);
  CHECK(suites.rows[0] == Row{"pairs", "accuracy %", "50.00", "[25.00, 75.00]", "62.50", "3", "1,200"});
  CHECK(suites.rows[1] == Row{"pairs", "micro_accuracy %", "51.00", "", "", "3", "1,200"});
  CHECK(suites.rows[2] == Row{"similarity", "spearman", "0.3000", "", "", "", "50"});
  const auto phenomena = table_of_runs(one, SuiteDetail::phenomena);
  REQUIRE(phenomena.rows.size() == 5);
  CHECK(phenomena.rows[2] == Row{"  islands", "accuracy %", "50.00", "", "", "", "800"});
  // The only group of the similarities says what their suite says.
  CHECK(table_of_runs(one, SuiteDetail::paradigms).rows.size() == 7);
  const std::vector plain{answers_of("runs/a", 10, {similarity(0.3)})};
  CHECK(heads_of(table_of_runs(plain, SuiteDetail::suites)) == Row{"suite", "metric", "value", "items"});
}

TEST_CASE("a mean over items that is the mean over paradigms is shown once", "[suites]") {
  auto same = pairs(0.5, 0.5);
  same.scores[1].value = 0.5;
  const std::vector one{answers_of("runs/a", 10, {same})};
  CHECK(table_of_runs(one, SuiteDetail::suites).rows.size() == 1);
}

TEST_CASE("several runs have a column each, with a dash where one did not answer", "[suites]") {
  const std::vector all{answers_of("runs/a", 10, {pairs(0.5, 0.625)}), answers_of("runs/b", 20, {similarity(0.25)})};
  const auto table = table_of_runs(all, SuiteDetail::suites, 0);
  CHECK(table.title == "Suites");
  CHECK(heads_of(table) == Row{"suite", "metric", "a", "b"});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0] == Row{"pairs", "accuracy %", "50.00 (62.50)", "-"});
  const std::vector equal{answers_of("runs/a", 10, {pairs(0.5, 0.5)}), all[1]};
  CHECK(table_of_runs(equal, SuiteDetail::suites, 0).rows[0] == Row{"pairs", "accuracy %", "50.00", "-"});
  CHECK_THAT(note_of_brackets(all, SuiteDetail::suites),
             Catch::StartsWith("a number in round brackets is the official one"));
  CHECK(note_of_brackets(equal, SuiteDetail::suites).empty());
  CHECK(table.rows[2] == Row{"similarity", "spearman", "-", "0.2500"});
}

TEST_CASE("a number that the published program does not have is a dash in tables, and null as JSON", "[suites]") {
  const std::vector one{answers_of("runs/a", 10, {pairs(0.5, NAN)})};
  const auto single = table_of_runs(one, SuiteDetail::suites);
  REQUIRE(single.header[4].name == "official");
  CHECK(single.rows[0][4] == "-");
  const std::vector both{one[0], answers_of("runs/b", 20, {pairs(0.25, 0.25)})};
  CHECK(table_of_runs(both, SuiteDetail::suites, 0).rows[0] == Row{"pairs", "accuracy %", "50.00 (-)", "25.00"});
  CHECK(nlohmann::json::parse(to_json(one[0].results[0].scores[0]).dump())["official"].is_null());
}

TEST_CASE("several runs have their intervals in the cells where the table has the columns for them", "[suites]") {
  const std::vector all{answers_of("runs/a", 10, {pairs(0.5, 0.625)}), answers_of("runs/b", 20, {pairs(0.75, 0.75)})};
  for (const size_t columns : {size_t{80}, size_t{1000}}) {
    const auto table = table_of_runs(all, SuiteDetail::phenomena, columns);
    CHECK(table.title == "Suites, with 95 % intervals");
    CHECK(table.rows[0] == Row{"pairs", "accuracy %", "50.00 (62.50) [25.00, 75.00]", "75.00 [25.00, 75.00]"});
    CHECK(table.rows[2] == Row{"  islands", "accuracy %", "50.00", "50.00"});
  }
  const auto narrow = table_of_runs(all, SuiteDetail::phenomena, 60);
  CHECK(narrow.title == "Suites");
  CHECK(narrow.rows[0] == Row{"pairs", "accuracy %", "50.00 (62.50)", "75.00"});
}

TEST_CASE("runs are named by the parts of their paths that tell them apart", "[suites]") {
  const auto names = [](const std::vector<std::string>& runs) {
    std::vector<CheckpointResults> all;
    for (const auto& run : runs) all.push_back(answers_of(run, 10, {pairs(0.5, 0.5)}));
    const auto header = heads_of(table_of_runs(all, SuiteDetail::suites));
    return Row(header.begin() + 2, header.end());
  };
  CHECK(names({"/long/path/runs/a", "/long/path/runs/b/"}) == Row{"a", "b"});
  CHECK(names({"x/runs/a/step-10", "x/other/a/step-10"}) == Row{"runs", "other"});
  CHECK(names({"x/a/step-10", "x/a/step-20", "x/b/step-10"}) == Row{"a/step-10", "a/step-20", "b/step-10"});
  CHECK(names({"runs/a", "runs/a/step-10"}) == Row{"a", "a/step-10"});
  CHECK(names({"runs/a", "runs/a"}) == Row{"runs/a", "runs/a"});
  auto one = answers_of("runs/one", 10, {pairs(0.5, 0.5)}), two = answers_of("runs/two", 10, {});
  two.skipped = {"cannot answer pairs: it has no head"};
  CHECK(notes_of(std::vector{one, two}).back() == "two: cannot answer pairs: it has no head");
}

TEST_CASE("checkpoints have a row each, or a column each where figures need more than 80 columns", "[suites]") {
  const std::vector all{answers_of("runs/a", 1000, {pairs(0.5, 0.625)}),
                        answers_of("runs/a", 2000, {pairs(0.75, 0.5)})};
  const auto table = table_of_checkpoints(all, SuiteDetail::suites, 0);
  CHECK(table.title == "Suites evaluated on the checkpoints of runs/a");
  CHECK(heads_of(table) == Row{"step", "pairs accuracy %", "pairs micro_accuracy %"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1] == Row{"2,000", "75.00 (50.00)", "76.00"});
  CHECK(table_of_checkpoints(all, SuiteDetail::suites).rows[1] ==
        Row{"2,000", "75.00 (50.00) [25.00, 75.00]", "76.00"});
  const auto turned = table_of_checkpoints(all, SuiteDetail::phenomena, 0);
  CHECK(turned.title == "Suites evaluated on the checkpoints of runs/a");
  CHECK(heads_of(turned) == Row{"step", "1,000", "2,000"});
  REQUIRE(turned.rows.size() == 4);
  CHECK(turned.rows[0] == Row{"pairs accuracy %", "50.00 (62.50)", "75.00 (50.00)"});
  CHECK(turned.rows[3] == Row{"pairs binding accuracy %", "75.00", "75.00"});
}

TEST_CASE("runs are named by what tells their paths apart, absolute ones too", "[suites]") {
  const std::vector all{answers_of("/data/runs/a", 10, {similarity(0.5)}), answers_of("b", 10, {similarity(0.5)})};
  CHECK(heads_of(table_of_runs(all, SuiteDetail::suites)) == Row{"suite", "metric", "/data/runs/a", "b"});
}

TEST_CASE("checkpoints are named by their words and revisions where these are known", "[suites]") {
  std::vector all{answers_of("runs/a", 1000, {similarity(0.5)}), answers_of("runs/a", 2000, {similarity(0.25)})};
  CHECK(heads_of(table_of_checkpoints(all, SuiteDetail::suites)) == Row{"step", "similarity spearman"});
  all[1].words = 2'000'123;
  all[1].revisions = {"chck_1M", "chck_2M"};
  const auto table = table_of_checkpoints(all, SuiteDetail::suites);
  CHECK(heads_of(table) == Row{"step", "words", "revision", "similarity spearman"});
  CHECK(table.rows[0] == Row{"1,000", "", "", "0.5000"});
  CHECK(table.rows[1] == Row{"2,000", "2,000,123", "chck_1M, chck_2M", "0.2500"});
  const auto lines = results_lines(std::span(all).last(1));
  const auto line = json::parse(lines.substr(0, lines.find('\n'))), whole = to_json(all[1]);
  for (const auto& object : {line, whole}) {
    CHECK(object["words"] == 2'000'123);
    CHECK(object["revisions"] == json::array({"chck_1M", "chck_2M"}));
  }
  CHECK_FALSE(to_json(all[0]).contains("words"));
  CHECK_FALSE(to_json(all[0]).contains("revisions"));
}

TEST_CASE("a correlation that there is none of is printed as none", "[suites]") {
  auto ages = similarity(std::nan(""));
  ages.scores[0].official = 0;
  const std::vector all{answers_of("runs/a", 10, {ages}), answers_of("runs/b", 20, {similarity(0.25)})};
  CHECK(table_of_runs(all, SuiteDetail::suites).rows[0] == Row{"similarity", "spearman", "none (0.0000)", "0.2500"});
  CHECK(table_of_runs(std::span(all).first(1), SuiteDetail::suites).rows[0] ==
        Row{"similarity", "spearman", "none", "0.0000", "50"});
  const auto lines = results_lines(std::span(all).first(1));
  CHECK(json::parse(lines.substr(0, lines.find('\n')))["value"].is_null());
}

TEST_CASE("notes say how suites were scored and what was not answered, each once", "[suites]") {
  auto first = answers_of("runs/a", 10, {pairs(0.5, 0.5)});
  const std::vector one{first, first};
  CHECK(notes_of(std::span(one).first(1)) ==
        Row{"pairs: scored by pll", "pairs: 1 of 1,200 items have candidates that are the same"});
  CHECK(notes_of(one).size() == 2);
  const std::vector two{first, answers_of("runs/b", 10, {pairs(0.25, 0.25)})};
  CHECK(notes_of(two)[0] == "a, b: pairs: scored by pll");
  auto others = pairs(0.5, 0.5);
  others.suite = "others";
  CHECK(notes_of(std::vector{answers_of("runs/a", 10, {pairs(0.5, 0.5), others, similarity(0.5)})}) ==
        Row{"pairs, others: scored by pll", "pairs, others: 1 of 1,200 items have candidates that are the same",
            "similarity: scored by cosine"});
  first.skipped = {"cannot answer facts: it has no head"};
  CHECK(notes_of(std::vector{first, first})[2] == "runs/a: cannot answer facts: it has no head");
}

TEST_CASE("lines of results and predictions name their run, step and suite", "[suites]") {
  const auto one = answers_of("runs/a", 10, {pairs(0.5, 0.625)});
  const auto results = results_lines(std::vector{one});
  CHECK(std::count(results.begin(), results.end(), '\n') == 6);
  const auto first = json::parse(results.substr(0, results.find('\n')));
  CHECK(first == json{{"run", "runs/a"},
                      {"checkpoint", "runs/a/step"},
                      {"step", 10},
                      {"suite", "pairs"},
                      {"scored_by", "pll"},
                      {"level", "suite"},
                      {"metric", "accuracy"},
                      {"value", 0.5},
                      {"low", 0.25},
                      {"high", 0.75},
                      {"official", 0.625},
                      {"count", 1200},
                      {"ties", 3}});
  const auto predictions = prediction_lines(one, one.results[0]);
  CHECK(std::count(predictions.begin(), predictions.end(), '\n') == 2);
  CHECK(json::parse(predictions.substr(0, predictions.find('\n'))) ==
        json{{"item", "deep/0"}, {"choice", 1}, {"run", "runs/a"}, {"step", 10}, {"suite", "pairs"}});
  const auto whole = to_json(one);
  CHECK(whole["suites"][0]["figures"].size() == 6);
  CHECK(whole["suites"][0]["figures"][2]["group"] == "islands");
  CHECK_FALSE(whole["suites"][0]["figures"][2].contains("official"));
  CHECK(whole["unanswered"].empty());
}

TEST_CASE("a text that is not UTF-8 does not stop the lines of predictions", "[suites]") {
  auto result = similarity(0.1);
  result.items = {json{{"item", "caf\xe9"}}};
  const auto answers = answers_of("runs/a", 10, {});
  CHECK(json::parse(prediction_lines(answers, result))["item"] == "caf\xEF\xBF\xBD");
}
