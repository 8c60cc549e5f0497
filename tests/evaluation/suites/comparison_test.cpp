// Two runs on the same items, whose credits no model gave.
#include "evaluation/suites/suite_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Items `c/0`, `c/1`, ... of a cluster c, with these credits.
void add_items(SuiteResult& result, const std::string& cluster, const std::vector<double>& credits) {
  for (size_t i = 0; i < credits.size(); ++i)
    result.proportions.front().items.push_back(
        {.item = cluster + "/" + std::to_string(i), .cluster = cluster, .credit = credits[i]});
}

SuiteResult result_of(const std::string& suite, bool is_of_clusters) {
  return {.suite = suite,
          .scored_by = "pll",
          .scores = {{.metric = "accuracy", .value = 0.5, .interval = Bounds{0.25, 0.75}, .count = 6}},
          .items = {},
          .notes = {},
          .proportions = {{.metric = "accuracy", .is_of_clusters = is_of_clusters}}};
}

CheckpointResults answers(std::vector<SuiteResult> results) {
  return {.run = "runs/a", .checkpoint = "runs/a/step", .results = std::move(results)};
}

SuiteComparison compared(const SuiteResult& first, const SuiteResult& second) {
  const auto all = compare_runs(answers({first}), answers({second}));
  REQUIRE(all.size() == 1);
  return all[0];
}

}  // namespace

TEST_CASE("a difference of a mean over paradigms weighs paradigms alike, one over items its items", "[suites]") {
  for (const bool is_of_clusters : {true, false}) {
    auto first = result_of("pairs", is_of_clusters), second = first;
    add_items(first, "long", {1, 1, 1, 0});
    add_items(second, "long", {1, 0, 0, 0});
    add_items(first, "short", {0, 1});
    add_items(second, "short", {1, 1});
    const auto found = compared(first, second);
    CHECK(found.difference == Approx(is_of_clusters ? (0.5 - 0.5) / 2 : (2.0 - 1.0) / 6).margin(1e-15));
    CHECK(found.items == 6);
    CHECK(found.only_first == 2);
    CHECK(found.only_second == 1);
    CHECK(found.mcnemar == 1);
  }
}

TEST_CASE("the interval of a difference is that over paradigms, and nowhere narrower than that over items",
          "[suites]") {
  auto first = result_of("pairs", true), second = first;
  // Differences of the paradigms: 1, 0 and 0.5.
  add_items(first, "a", {1, 1});
  add_items(second, "a", {0, 0});
  add_items(first, "b", {1, 1});
  add_items(second, "b", {1, 1});
  add_items(first, "c", {1, 0});
  add_items(second, "c", {0, 0});
  const auto found = compared(first, second);
  CHECK(found.difference == Approx(0.5));
  // t(0.975, 2) times the standard error of three means whose sd is 0.5, cut to 1.
  CHECK(found.interval->low == Approx(0.5 - 4.302652729911275 * 0.5 / std::sqrt(3.0)));
  CHECK(found.interval->high == 1);
  // Two paradigms that differ alike by chance: single items decide. t(0.975, 7) sd 0.534522 / sqrt(8).
  auto third = result_of("pairs", true), fourth = third;
  for (const auto* cluster : {"a", "b"}) {
    add_items(third, cluster, {1, 1, 1, 1});
    add_items(fourth, cluster, {0, 0, 1, 1});
  }
  const auto alike = compared(third, fourth);
  CHECK(alike.interval->low == Approx(0.5 - 2.364624251592785 * 0.5345224838248488 / std::sqrt(8.0)));
  // One paradigm has items alone.
  auto one = result_of("pairs", true), other = one;
  add_items(one, "a", {1, 1, 0, 0});
  add_items(other, "a", {0, 1, 0, 0});
  CHECK(compared(one, other).interval->low == Approx(0.25 - 3.182446305284263 * 0.5 / std::sqrt(4.0)));
}

TEST_CASE("p of several suites are corrected, and ties are right of nobody", "[suites]") {
  auto first = result_of("pairs", true), second = first;
  add_items(first, "a", std::vector<double>(10, 1));
  add_items(second, "a", {0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0});
  auto other = result_of("words", true), same = other;
  add_items(other, "a", {1, 0.5});
  add_items(same, "a", {1, 0.5});
  const auto all = compare_runs(answers({first, other}), answers({same, second}));
  REQUIRE(all.size() == 2);
  CHECK(all[0].suite == "pairs");
  CHECK(all[0].only_first == 10);
  CHECK(all[0].mcnemar == Approx(2.0 / 1024));
  CHECK(all[0].holm == Approx(4.0 / 1024));
  CHECK(all[1].mcnemar == 1);
  CHECK(all[1].interval->low == Approx(std::sqrt(0.025) - 1));  // no item of two differs
  const auto table = table_of(all, "a", "b");
  CHECK(table.title == "a less b");
  CHECK((table.rows[0] == std::vector<std::string>{"pairs accuracy %", "50.00 [25.00, 75.00]", "50.00 [25.00, 75.00]",
                                                   "+90.00", "[+74.92, +100.00]", "10", "0", "0.002", "0.0039"}));
  const auto line = to_json(all[0]);
  CHECK(line["mcnemar_holm"] == all[0].holm);
  CHECK(line["first"]["low"] == 0.25);
  // Without a second suite there is nothing to correct, and no column.
  CHECK(table_of(std::span(all).first(1), "a", "b").header.back().name == "McNemar's p");
}

TEST_CASE("only items that both runs have are compared, and suites of one metric", "[suites]") {
  auto first = result_of("facts", true), second = first;
  add_items(first, "capital", {1, 0, 1});
  add_items(second, "capital", {1, 1});
  CHECK(compared(first, second).items == 2);
  second.proportions.front().metric = "restricted_p@1";
  CHECK(compare_runs(answers({first}), answers({second})).empty());
  second.proportions.clear();
  CHECK(compare_runs(answers({first}), answers({second})).empty());
  CHECK(compare_runs(answers({first}), answers({})).empty());
}
