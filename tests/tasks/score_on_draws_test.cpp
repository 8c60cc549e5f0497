// A score with what comparisons of several models on the same items need.
#include <cmath>
#include <numeric>

#include "tasks/scores/scores.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct Judged {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  TaskLabels labels{.names = {"no", "yes"}, .written = {"0", "1"}};
};

/// 60 items, of which every third has the label 1, and every fourth a wrong prediction.
Judged judged() {
  Judged made;
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t label = i % 3 == 0;
    made.items.push_back({.id = std::to_string(i), .text = std::to_string(i), .gold = label_answer(label)});
    made.predictions.push_back({.id = std::to_string(i), .answer = {.label = i % 4 == 0 ? 1 - label : label}});
  }
  return made;
}

}  // namespace

TEST_CASE("a share of items that are right is known item by item") {
  const auto made = judged();
  const auto found = score_on_draws("classification", made.items, made.labels, made.predictions, "accuracy");
  REQUIRE(found.of_units.size() == 60);
  CHECK(found.draws.empty());
  CHECK(found.value == Approx(0.75));
  for (size_t i = 0; i < 60; ++i) CHECK(found.of_units[i] == (i % 4 == 0 ? 0 : 1));
}

TEST_CASE("a figure that is no mean of items has values on draws, which are the same for all predictions") {
  auto made = judged();
  const auto f1 = [&] { return score_on_draws("classification", made.items, made.labels, made.predictions, "f1"); };
  const auto found = f1(), again = f1();
  CHECK(found.draws == again.draws);
  CHECK(found.units == 60);
  REQUIRE(std::ssize(found.draws) == comparison_draws);
  const double mean = std::accumulate(found.draws.begin(), found.draws.end(), 0.0) / comparison_draws;
  CHECK(mean == Approx(found.value).margin(0.02));
  for (auto& one : made.predictions) one.answer.label = 1 - one.answer.label;  // wrong where it was right
  const auto wrong = f1();
  double together = 0;  // draws with many hard items are bad for one and good for the other
  for (size_t d = 0; d < found.draws.size(); ++d)
    together += (found.draws[d] - found.value) * (wrong.draws[d] - wrong.value);
  CHECK(together < 0);
  CHECK_THROWS_WITH(score_on_draws("classification", made.items, made.labels, made.predictions, "f7"),
                    Catch::Contains("the task has no figure 'f7'; did you mean 'f1'?; it has accuracy, "));
}

TEST_CASE("items of which no label is known have no figure to compare runs by") {
  auto made = judged();
  for (auto& item : made.items) item.gold = label_answer(unknown_label);
  for (const std::string metric : {"accuracy", "f1", "mcc"}) {
    const auto found = score_on_draws("classification", made.items, made.labels, made.predictions, metric);
    CHECK(std::isnan(found.value));
  }
}

TEST_CASE("draws and shares of items know which items share a text") {
  auto made = judged();
  for (size_t i = 0; i < made.items.size(); ++i) made.items[i].text = std::to_string(i / 4);
  const auto share = score_on_draws("classification", made.items, made.labels, made.predictions, "accuracy");
  REQUIRE(share.clusters.size() == 60);
  CHECK(share.clusters[3] == share.clusters[0]);
  CHECK(share.clusters[4] != share.clusters[0]);
  const auto alone = judged();
  const auto spread = [](const Judged& of) {
    const auto draws = score_on_draws("classification", of.items, of.labels, of.predictions, "mcc").draws;
    const double mean = std::accumulate(draws.begin(), draws.end(), 0.0) / comparison_draws;
    double squares = 0;
    for (const double draw : draws) squares += (draw - mean) * (draw - mean);
    return std::sqrt(squares / comparison_draws);
  };
  // Each text has one wrong item of four, so that drawing texts moves the score less than drawing items.
  CHECK(spread(made) < 0.6 * spread(alone));
}
