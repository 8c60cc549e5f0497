#include "core/report/score_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "tests/support/catch.h"

using namespace cloze;
using nlohmann::json;

TEST_CASE("a score is read as it was written, with its interval where it has one", "[core][report]") {
  const Score whole{.metric = "accuracy", .value = 0.625, .interval = Bounds{0.5, 0.75}, .count = 40, .ties = 2};
  CHECK(score_of("accuracy", parse_json(json_text(score_json(whole)))) == whole);
  const auto fields = score_json({.metric = "spearman", .value = -0.25, .count = 9});
  CHECK(fields == json{{"value", -0.25}, {"count", 9}, {"ties", 0}});
  CHECK_FALSE(score_of("spearman", fields).interval.has_value());
}

TEST_CASE("an undefined score is null in JSON, and what is no score is undefined", "[core][report]") {
  const auto text = json_text(score_json({.metric = "pearson", .count = 3}));
  CHECK(text == R"({"count":3,"ties":0,"value":null})");
  CHECK(score_of("pearson", parse_json(text)).count == 3);
  for (const auto* other : {"null", "5", "[1]", "{}", R"({"value": "0.5", "low": 0.1, "count": "many"})"}) {
    INFO(other);
    const auto score = score_of("f1", parse_json(other));
    CHECK_FALSE(score.is_defined());
    CHECK(score.metric == "f1");
    CHECK(score.count == 0);
  }
}

TEST_CASE("shares are shown in percent, other scores in full, and intervals in brackets", "[core][report]") {
  CHECK(value_cell({.metric = "micro_accuracy", .value = 0.667, .interval = Bounds{0.5, 0.75}}) ==
        "66.70 [50.00, 75.00]");
  CHECK(value_cell({.metric = "mrr", .value = 0.25}) == "0.2500");
  CHECK(value_cell({.metric = "pearson"}) == "none");
}
