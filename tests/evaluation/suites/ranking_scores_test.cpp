// Scores of a suite from those of candidates that no model gave.
#include "evaluation/suites/ranking_scores.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "evaluation/suites/statistics.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A score of tokens with these log-probabilities.
PassageScore score_of(const std::vector<double>& log_probabilities, int64_t word_count = 1, int64_t byte_count = 4) {
  PassageScore score{.words = word_count, .bytes = byte_count};
  for (const double value : log_probabilities) {
    score.tokens.push_back({.id = 9, .end = 4, .log_probability = value});
    score.sum += value;
  }
  return score;
}

RankingItem pair_of(const std::string& paradigm, int number, const std::string& phenomenon = "") {
  return {.name = paradigm + "/" + std::to_string(number),
          .paradigm = paradigm,
          .phenomenon = phenomenon,
          .candidates = {{.scored = "good"}, {.scored = "bad"}}};
}

/// Items of pairs and the scores of their candidates, of which those of a suite are made.
struct Pairs {
  std::vector<RankingItem> items;
  std::vector<PassageScore> scores;
  void add(RankingItem item, double good, double bad) {
    items.push_back(std::move(item));
    scores.push_back(score_of({good}));
    scores.push_back(score_of({bad}));
  }
  std::vector<Score> suite_scores() const { return ranking_scores(items, official()); }
  std::vector<RankedItem> official() const {
    auto ranked = rank_items(items, scores, Normalisation::sum);
    add_official_sums(items, scores, ranked);
    return ranked;
  }
};

const Score& score(const std::vector<Score>& scores, const std::string& metric, const std::string& group) {
  for (const auto& one : scores)
    if (one.metric == metric && one.group == group) return one;
  FAIL("no figure " << metric << " of '" << group << "'");
  return scores[0];
}

}  // namespace

TEST_CASE("a tie of n best candidates counts 1 / n, and the published rule takes the first", "[suites]") {
  RankingItem item = pair_of("p", 0);
  item.candidates.push_back({.scored = "third"});
  const std::vector items{item};
  const auto ranked = [&](double a, double b, double c) {
    const std::vector scores{score_of({a}), score_of({b}), score_of({c})};
    auto all = rank_items(items, scores, Normalisation::sum);
    add_official_sums(items, scores, all);
    return all[0];
  };
  CHECK(ranked(-1, -2, -3).credit == 1);
  CHECK_FALSE(ranked(-1, -2, -2).tied);
  CHECK(ranked(-1, -1, -3).credit == 0.5);
  CHECK(ranked(-1, -1, -1).credit == Approx(1.0 / 3));
  CHECK(ranked(-1, -1, -1).tied);
  CHECK(to_json(item, ranked(-1, -1, -1))["official_choice"] == 0);
  CHECK(ranked(-3, -1, -1).credit == 0);
  CHECK(ranked(-3, -1, -1).tied);
  CHECK(ranked(-3, -2, -1).choice == 2);
}

TEST_CASE("the items of a share are those with an answer that count for its metric, with their credits", "[suites]") {
  Pairs pairs;
  auto unanswered = pair_of("p", 0), of_contexts = pair_of("p", 1);
  unanswered.answer.reset();
  of_contexts.metric = "context_accuracy";
  pairs.add(unanswered, -1, -2);
  pairs.add(pair_of("p", 2), -1, -1);
  pairs.add(of_contexts, -1, -2);
  pairs.add(pair_of("q", 0), -1, -2);
  const auto proportions = proportions_of(pairs.items, pairs.official());
  REQUIRE(proportions.size() == 2);
  CHECK(proportions[1].metric == "context_accuracy");
  const auto* share = &proportions[0];
  CHECK(share->metric == "accuracy");
  CHECK(share->is_of_clusters);
  REQUIRE(share->items.size() == 2);
  CHECK(share->items[0].item == "p/2");
  CHECK(share->items[0].credit == 0.5);
  CHECK(share->items[1].cluster == "q");
  CHECK(share->items[1].credit == 1);
  CHECK(share->items[1].guess == 0.5);
  CHECK(proportions_of({}, {}).empty());
}

TEST_CASE("candidates are compared by sum, token, word or byte", "[suites]") {
  const std::vector items{pair_of("p", 0)};
  // sums -4 and -3, by token -1 and -1.5, by word -4 and -1, by byte -0.5 and -0.75
  const std::vector scores{score_of({-1, -1, -1, -1}, 1, 8), score_of({-1, -2}, 3, 4)};
  const auto choice = [&](Normalisation by) { return rank_items(items, scores, by)[0].choice; };
  CHECK(choice(Normalisation::sum) == 1);
  CHECK(choice(Normalisation::token) == 0);
  CHECK(choice(Normalisation::word) == 1);
  CHECK(choice(Normalisation::byte) == 0);
  auto by_token = rank_items(items, scores, Normalisation::token);
  add_official_sums(items, scores, by_token);
  CHECK(to_json(items[0], by_token[0])["official_choice"] == 1);  // sums, whatever the normalisation
}

TEST_CASE("sums of the published program are in fp32, where small differences are ties", "[suites]") {
  Pairs pairs;
  pairs.add(pair_of("p", 0), -100.000001, -100);  // one fp32 number
  pairs.add(pair_of("p", 1), -1, -2);
  const auto scores = pairs.suite_scores();
  CHECK(scores[0].value == 0.5);
  CHECK(scores[0].ties == 0);
  CHECK(scores[0].official == 1.0);
  const auto own = ranking_scores(pairs.items, rank_items(pairs.items, pairs.scores, Normalisation::sum));
  CHECK(own[0].value == 0.5);
  CHECK_FALSE(own[0].official);
}

TEST_CASE("the suite is the mean over paradigms, with micro_accuracy over items next to it", "[suites]") {
  Pairs pairs;
  for (int i = 0; i < 8; ++i) pairs.add(pair_of("long", i, "x"), -1, i < 6 ? -2 : -0.5);   // 6 of 8
  for (int i = 0; i < 2; ++i) pairs.add(pair_of("short", i, "x"), -1, i < 1 ? -2 : -1);    // 1 and a tie
  for (int i = 0; i < 4; ++i) pairs.add(pair_of("other", i, "y"), -1, i < 1 ? -2 : -0.5);  // 1 of 4
  const auto scores = pairs.suite_scores();
  CHECK(scores[0].metric == "accuracy");
  CHECK(scores[0].level == SuiteLevel::suite);
  CHECK(scores[0].value == Approx((0.75 + 0.75 + 0.25) / 3));
  CHECK(scores[0].count == 14);
  CHECK(scores[0].ties == 1);
  CHECK(scores[0].official == Approx((0.75 + 1 + 0.25) / 3));
  const auto bounds = clustered_mean(std::vector{0.75, 0.75, 0.25}, std::vector{1.0, 1.0, 1.0}).interval;
  CHECK(scores[0].interval->low == std::max(0.0, bounds->low));
  CHECK(scores[0].interval->high == std::min(1.0, bounds->high));
  CHECK(score(scores, "micro_accuracy", "").value == Approx(8.5 / 14));
  CHECK(score(scores, "accuracy", "x").value == 0.75);
  CHECK(score(scores, "accuracy", "x").level == SuiteLevel::phenomenon);
  CHECK(score(scores, "accuracy", "x").interval->low == wilson(7.5, 10).low);  // two paradigms that are alike by chance
  CHECK(score(scores, "accuracy", "y").interval->low == wilson(1, 4).low);     // one paradigm
  const auto& last = score(scores, "accuracy", "short");
  CHECK(last.level == SuiteLevel::paradigm);
  CHECK(last.interval->low == wilson(1.5, 2).low);
  CHECK(last.official == 1.0);
  CHECK_FALSE(score(scores, "accuracy", "long").official);
  CHECK(std::is_sorted(scores.begin(), scores.end(), [](const auto& a, const auto& b) { return a.level < b.level; }));
}

TEST_CASE("a paradigm whose items are of several phenomena counts in each with its own items", "[suites]") {
  Pairs pairs;
  for (int i = 0; i < 4; ++i) pairs.add(pair_of("comps", i, "random"), -1, -2);                  // 4 of 4
  for (int i = 4; i < 12; ++i) pairs.add(pair_of("comps", i, "taxonomic"), -1, i < 6 ? -2 : 0);  // 2 of 8
  const auto scores = pairs.suite_scores();
  CHECK(scores[0].value == 0.5);  // of items, whatever their phenomena
  CHECK(scores[0].interval->low == wilson(6, 12).low);
  CHECK(score(scores, "accuracy", "random").value == 1);
  CHECK(score(scores, "accuracy", "random").count == 4);
  CHECK(score(scores, "accuracy", "taxonomic").value == 0.25);
  CHECK(score(scores, "accuracy", "taxonomic").interval->low == wilson(2, 8).low);
  CHECK(score(scores, "accuracy", "comps").count == 12);
}

TEST_CASE("pairs with judgements have a correlation with people, and an accuracy against their majority", "[suites]") {
  Pairs pairs;
  const double preferences[] = {0.9, 0.6, 0.5, 0.1};
  const double gaps[] = {3, -1, 0.5, -2};  // of the first before the second
  for (int i = 0; i < 4; ++i) {
    auto item = pair_of("wug", i);
    item.preference = preferences[i];
    item.answer = preferences[i] > 0.5 ? std::optional<size_t>(0) : std::optional<size_t>(1);
    if (preferences[i] == 0.5) item.answer.reset();
    pairs.add(item, gaps[i], 0);
  }
  const auto scores = pairs.suite_scores();
  CHECK(scores[0].metric == "spearman");
  CHECK(scores[0].value == Approx(0.8));  // ranks 4 2 3 1 against 4 3 2 1
  CHECK(scores[0].count == 4);
  CHECK_FALSE(scores[0].official);
  CHECK(score(scores, "accuracy", "").value == Approx(2.0 / 3));
  CHECK(score(scores, "accuracy", "").count == 3);
  const auto line = to_json(pairs.items[0], pairs.official()[0]);
  CHECK(line["probability"].get<double>() == Approx(1 / (1 + std::exp(-3.0))));
  CHECK(line["official_probability"].get<double>() == Approx(1 / (1 + std::exp(-3.0))).epsilon(1e-6));
  CHECK(line["preference"] == 0.9);
}

TEST_CASE("a softmax in fp32 that rounds to 1 makes ranks equal in the published correlation alone", "[suites]") {
  Pairs pairs;
  const double gaps[] = {40, 30, -1, -2};
  for (int i = 0; i < 4; ++i) {
    auto item = pair_of("wug", i);
    item.preference = 0.9 - 0.2 * i;
    pairs.add(item, gaps[i], 0);
  }
  const auto scores = pairs.suite_scores();
  CHECK(scores[0].value == 1);
  REQUIRE(scores[0].official);
  CHECK(*scores[0].official < 1);
}

TEST_CASE("scores that are not finite and candidates without tokens are refused by their item", "[suites]") {
  const std::vector items{pair_of("p", 4)};
  const std::vector diverged{score_of({std::numeric_limits<double>::quiet_NaN()}), score_of({-1})};
  CHECK_THROWS_WITH(rank_items(items, diverged, Normalisation::sum),
                    Contains("item p/4: the score of 'good' is not finite"));
  const std::vector silent{score_of({-1}), score_of({})};
  CHECK_THROWS_WITH(rank_items(items, silent, Normalisation::sum), Contains("item p/4: 'bad' has no token to score"));
}

TEST_CASE("a line of predictions has the scores, the choice and what it earned", "[suites]") {
  auto item = pair_of("p", 0, "x");
  item.candidates[0].left = "so ";
  const std::vector items{item};
  const std::vector scores{score_of({-1, -1}), score_of({-2})};
  const auto line = to_json(item, rank_items(items, scores, Normalisation::token)[0]);
  CHECK(line["item"] == "p/0");
  CHECK(line["candidates"][0] ==
        nlohmann::json{{"left", "so "}, {"scored", "good"}, {"score", -1.0}, {"sum", -2.0}, {"tokens", 2}});
  CHECK(line["choice"] == 0);
  CHECK(line["credit"] == 1.0);
  CHECK_FALSE(line.contains("official_choice"));  // without sums of the published program
  CHECK(line["tie"] == false);
}

TEST_CASE("accuracies are quotients of their sums, over paradigms or over the items of one", "[suites]") {
  Pairs pairs;
  pairs.add(pair_of("near", 0), -1, -2);
  pairs.add(pair_of("near", 1), -2, -1);
  pairs.add(pair_of("near", 2), -1, -2);
  pairs.add(pair_of("far", 0), -3, -2);
  const auto ranked = pairs.official();
  const auto scores = ranking_scores(pairs.items, ranked);
  const SuiteResult result{
      .suite{}, .scored_by{}, .scores = scores, .items{}, .proportions = proportions_of(pairs.items, ranked)};
  for (const std::string metric : {"accuracy", "micro_accuracy"}) {
    const auto sums = *sums_of(result, metric);
    const auto value = (sums.sum[0] + sums.sum[1]) / (sums.count[0] + sums.count[1]);
    CHECK(value == Approx(score(scores, metric, "").value).epsilon(1e-12));
    CHECK(sums.floor == Approx(0.5));
  }
  CHECK(sums_of(result, "accuracy")->sum == std::vector<double>{2.0 / 3, 0});
  CHECK_FALSE(sums_of(result, "spearman").has_value());
  pairs.items.pop_back();
  pairs.scores.resize(6);
  const SuiteResult alone{
      .suite{}, .scored_by{}, .scores{}, .items{}, .proportions = proportions_of(pairs.items, pairs.official())};
  CHECK(sums_of(alone, "accuracy")->sum == std::vector<double>{1, 0, 1});
}

TEST_CASE("the fingerprint of items changes with a word, an answer and a name", "[suites]") {
  const std::vector<RankingItem> items{pair_of("near", 0)};
  auto other = items;
  other[0].candidates[1].scored = "bed";
  CHECK(fingerprint_of(items) != fingerprint_of(other));
  other = items;
  other[0].answer = 1;
  CHECK(fingerprint_of(items) != fingerprint_of(other));
  CHECK(fingerprint_of(items) == fingerprint_of(std::vector<RankingItem>(items)));
}
