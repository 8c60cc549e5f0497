#include "evaluation/tasks/layer_curve.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

LayerCurve three_layers() {
  const auto score = [](double value, double low, double high) {
    return Score{.metric = "accuracy", .value = value, .interval = Bounds{low, high}, .count = 80};
  };
  return {.task = "sst2",
          .metric = "accuracy",
          .best = 1,
          .points = {{0, score(0.5, 0.4, 0.6), score(0.525, 0.41, 0.63)},
                     {3, score(0.75, 0.6, 0.8), score(0.7, 0.59, 0.79)},
                     {6, score(NAN, 0, 0), score(0.8, 0.7, 0.9)}}};
}

}  // namespace

TEST_CASE("a curve over layers is a table, and its verdict names the best layer on valid with its test figure",
          "[evaluation][tasks]") {
  const auto curve = three_layers();
  CHECK(verdict_of(curve) ==
        "the best of 3 layers on the valid part is 3, with accuracy 75.00 %; its test figure is 70.00 %");
  const auto table = table_of(curve);
  CHECK((heads_of(table) == std::vector<std::string>{"layer", "valid accuracy %", "test accuracy %", "interval"}));
  REQUIRE(table.rows.size() == 3);
  CHECK((table.rows[0] == std::vector<std::string>{"0", "50.00", "52.50", "[41.00, 63.00]"}));
  CHECK((table.rows[2] == std::vector<std::string>{"6", "-", "80.00", "[70.00, 90.00]"}));
}

TEST_CASE("what is undefined at a layer is null in JSON, and no point of the chart", "[evaluation][tasks]") {
  const auto curve = three_layers();
  const auto found = to_json(curve);
  REQUIRE(found.size() == 3);
  CHECK(found[1] == nlohmann::json::parse(R"({"layer": 3, "valid": {"value": 0.75, "count": 80},
                                              "test": {"value": 0.7, "low": 0.59, "high": 0.79, "count": 80}})"));
  CHECK(found[2]["valid"]["value"].is_null());
  const auto svg = layers_svg(curve);
  CHECK_THAT(svg, Contains("sst2: accuracy by layer") && Contains("valid") && Contains("test"));
  CHECK_THAT(svg, !Contains("nan"));
  auto diverged = curve;
  for (auto& point : diverged.points) point.valid.value = point.test.value = NAN;
  CHECK(verdict_of(diverged) == "none of 3 layers has accuracy on the valid part");
}
