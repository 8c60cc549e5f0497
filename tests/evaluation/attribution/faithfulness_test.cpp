// Faithfulness by direct evaluation, and how it is shown.
#include "evaluation/attribution/attribution_output.h"

#include <nlohmann/json.hpp>

#include "tests/evaluation/attribution/attributed.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

bool is_near(double got, double wanted) { return std::abs(got - wanted) < 1e-6; }

double probability_with(const OneRow& one, const std::vector<bool>& present) {
  return score_variants(one.in(), {with_words(0, one.explained[0], one.rows[0], present)})[0].probability;
}

Faithfulness of_shares(double comprehensiveness, double random) {
  return {.comprehensiveness = {comprehensiveness, comprehensiveness, comprehensiveness},
          .random_comprehensiveness = {random, random, random}};
}

}  // namespace

TEST_CASE("probabilities fall by the words of the highest values alone and without them, a tenth of them at least one",
          "[evaluation][attribution]") {
  const OneRow one(7);
  auto made = one.attribution({.method = AttributionMethod::occlusion});
  made.values = {0.1, -3, 0.7, 0.2, 0.6, 0, 0.5};
  const auto found = faithfulness_of(one.in(), one.explained, {made}, 1)[0];
  const double whole = probability_with(one, std::vector<bool>(7, true));
  CHECK(is_near(found.comprehensiveness[0], whole - probability_with(one, {1, 1, 0, 1, 1, 1, 1})));
  CHECK(is_near(found.comprehensiveness[1], whole - probability_with(one, {1, 1, 0, 1, 0, 1, 1})));
  CHECK(is_near(found.comprehensiveness[2], whole - probability_with(one, {1, 1, 0, 0, 0, 1, 0})));
  CHECK(is_near(found.sufficiency[0], whole - probability_with(one, {0, 0, 1, 0, 0, 0, 0})));
  CHECK(is_near(found.sufficiency[2], whole - probability_with(one, {0, 0, 1, 1, 1, 0, 1})));
  CHECK(faithfulness_of(one.in(), one.explained, {made}, 1)[0].random_sufficiency == found.random_sufficiency);
  CHECK(faithfulness_of(one.in(), one.explained, {made}, 2)[0].random_sufficiency != found.random_sufficiency);
}

TEST_CASE("means are over items, each with the mean of its scores, and the interval is that of the difference",
          "[evaluation][attribution]") {
  FaithfulnessMeans means;
  means.add(0, of_shares(0.5, 0.1));
  means.add(1, of_shares(0.7, 0.2));
  means.add(2, of_shares(0.6, 0.3));
  const auto difference = means.json()["comprehensiveness"]["20"]["difference"];
  CHECK(is_near(difference["mean"], 0.4));
  // Student's t of 2 degrees of freedom times the standard deviation 0.1 by the root of 3.
  CHECK(std::abs(difference["low"].get<double>() - (0.4 - 4.302652729911275 * 0.1 / std::sqrt(3.0))) < 1e-3);
  const auto table = means.table();
  CHECK(table.rows.size() == 6);
  CHECK(table.rows[1][0] == "comprehensiveness");
  CHECK(table.rows[1][1] == "20");
  CHECK(table.rows[1][2] == "0.6000");
  CHECK(table.rows[1][3] == "0.2000");
  CHECK_THAT(table.rows[1][4], Contains("+0.4000 [0.1") && Contains(", 0.6"));
  CHECK(width_of(table) <= 80);
  FaithfulnessMeans single;
  single.add(0, of_shares(0.5, 0.1));
  CHECK(single.table().rows[0][4] == "+0.4000");
  single.add(0, of_shares(0.7, 0.1));
  CHECK(single.table().rows[0][4] == "+0.5000");
}

TEST_CASE("a text shows its words with values where there are no colours, in 80 columns", "[evaluation][attribution]") {
  Explained explained{.name = "dev:3", .label = "good", .predicted = "good", .gold = "bad"};
  for (const auto* word : {"a", "fine", "film", "\x1b[2Jbad"}) explained.words.push_back({.text = word});
  const Attribution made{
      .values = {0.01, 2, 0.5, -1.25}, .score = 3.25, .baseline = 1.99, .probability = 0.9, .check = 0.0012};
  const Faithfulness faithfulness = of_shares(0.5, 0.1);
  const ShownScore shown{explained, made, faithfulness};
  const auto method = AttributionMethod::integrated_gradients;
  CHECK(text_of(shown, method, false, 80) ==
        "dev:3: good, right is bad; probability 0.900, score 3.25, baseline 1.99;\n"
        "  completeness error 0.12 %\n"
        "  a fine(+2) film(+0.5) \\x1b[2Jbad(-1.25)\n");
  CHECK_THAT(text_of(shown, method, true, 80),
             Contains("  a \033[1m\033[32mfine\033[0m \033[32mfilm\033[0m \033[1m\033[31m\\x1b[2Jbad\033[0m\n"));
  const auto json = json_of(shown, method);
  CHECK(json["words"][1] == nlohmann::ordered_json::parse(R"({"word": "fine", "value": 2.0})"));
  CHECK(json["completeness_error"] == 0.0012);
  CHECK(json["gold"] == "bad");
  CHECK(json["faithfulness"]["comprehensiveness"]["10"]["random"] == 0.1);
  FaithfulnessMeans means;
  means.add(0, faithfulness);
  const auto page =
      page_of({.run = "runs/<x>", .method = method, .baseline = "[PAD]", .items = 1}, html_of(shown, method), means);
  CHECK_THAT(page, Contains("<span class=\"for\" style=\"--v: 1.000\" title=\"+2\">fine</span>") &&
                       Contains("<span class=\"against\" style=\"--v: 0.625\" title=\"-1.25\">") &&
                       Contains("runs/&lt;x&gt;") && Contains("[PAD]") && Contains("Faithfulness"));
  CHECK_THAT(page, !Contains("http") && !Contains("<script"));
}
