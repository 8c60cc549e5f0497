#include "study/statistics.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "tests/support/catch.h"

using namespace cloze;
using nlohmann::json;

namespace {

const json& reference() {
  static const json all = json::parse(std::ifstream(SOURCE_DIR "/tests/study/statistics.json"));
  return all;
}

std::vector<ExampleLosses> runs(const json& sums, const json& counts) {
  std::vector<ExampleLosses> found;
  for (const auto& run : sums) found.push_back({run.get<std::vector<double>>(), counts.get<std::vector<double>>()});
  return found;
}

std::vector<double> values(const std::vector<ExampleLosses>& runs) {
  std::vector<double> found;
  for (const auto& run : runs) found.push_back(run.value());
  return found;
}

using Runs = std::vector<const ExampleLosses*>;

Runs pointers(const std::vector<ExampleLosses>& runs) {
  Runs found;
  for (const auto& run : runs) found.push_back(&run);
  return found;
}

/// The bootstrap of one arm.
std::vector<double> bootstrap(const std::vector<ExampleLosses>& arm, const std::vector<ExampleLosses>& baseline,
                              const ComparisonRules& rules) {
  return multibootstrap({pointers(arm)}, pointers(baseline), rules).front();
}

Approx near(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }

Difference difference_of(double p, std::optional<double> p_equivalence, Interval bootstrap) {
  return {.mean = (bootstrap.low + bootstrap.high) / 2,
          .sd = 0.01,
          .seeds = 5,
          .t_interval = bootstrap,
          .bootstrap_interval = bootstrap,
          .p = p,
          .p_equivalence = p_equivalence};
}

}  // namespace

TEST_CASE("paired differences agree with SciPy: mean, t interval, p, equivalence, seeds needed") {
  for (const auto& expected : reference()["comparisons"]) {
    const auto arm = runs(expected["arm"], expected["counts"]), base = runs(expected["baseline"], expected["counts"]);
    const auto found = compare_seeds(values(arm), values(base), {.margin = expected["margin"]});
    CHECK(found.mean == near(expected["mean"]));
    CHECK(found.sd == near(expected["sd"]));
    CHECK(*found.p == near(expected["p"]));
    CHECK(found.t_interval->low == near(expected["t_interval"][0]));
    CHECK(found.t_interval->high == near(expected["t_interval"][1]));
    CHECK(*found.p_equivalence == near(expected["p_equivalence"]));
    CHECK(*found.seeds_needed == expected["seeds_needed"].get<int64_t>());
  }
}

TEST_CASE("the two-level bootstrap agrees with an independent program that draws the same numbers") {
  for (const auto& expected : reference()["comparisons"]) {
    const auto arm = runs(expected["arm"], expected["counts"]), base = runs(expected["baseline"], expected["counts"]);
    const auto draws = bootstrap(arm, base, {.resamples = 200, .seed = 7});
    CHECK(std::accumulate(draws.begin(), draws.end(), 0.0) / 200 == near(expected["bootstrap_mean"]));
    const auto interval = expanded_percentiles(draws, static_cast<int64_t>(arm.size()), 0.95);
    CHECK(interval.low == near(expected["bootstrap_interval"][0]));
    CHECK(interval.high == near(expected["bootstrap_interval"][1]));
  }
}

TEST_CASE("the draws of an arm do not depend on the other arms, nor on counts that arms share", "[study]") {
  std::vector<std::vector<ExampleLosses>> arms(12, std::vector<ExampleLosses>(3));
  auto stream = Rng(2).stream("losses");
  for (auto& arm : arms)
    for (auto& run : arm)
      for (int e = 0; e < 50; ++e) {
        run.sum.push_back(stream.uniform());
        run.count.push_back(&arm == &arms[4] ? 2 + e % 3 : 1 + e % 5);  // one arm was counted by itself
      }
  std::vector<Runs> others;
  for (size_t a = 1; a < arms.size(); ++a) others.push_back(pointers(arms[a]));
  const ComparisonRules rules{.resamples = 50};  // no multiple of the resamples that are drawn together
  const auto together = multibootstrap(others, pointers(arms[0]), rules);
  REQUIRE(together.size() == 11);
  for (size_t a = 1; a < arms.size(); ++a) {
    CHECK(together[a - 1] == bootstrap(arms[a], arms[0], rules));
    CHECK(together[a - 1].size() == 50);
  }
}

TEST_CASE("Holm's correction and the test of uniformity agree with their formulas in NumPy and SciPy") {
  const auto corrected = holm(reference()["holm"]["p"].get<std::vector<double>>());
  for (size_t i = 0; i < corrected.size(); ++i) CHECK(corrected[i] == near(reference()["holm"]["corrected"][i]));
  const auto test = uniform_test(reference()["uniform"]["values"].get<std::vector<double>>());
  CHECK(test.statistic == near(reference()["uniform"]["statistic"]));
  CHECK(test.p == Approx(reference()["uniform"]["p"].get<double>()).margin(0.01));  // SciPy's is exact, ours the limit
}

TEST_CASE("one arm in a hundred of equal runs has an outlier, and a run far from the others is one") {
  for (const size_t seeds : {4, 5, 20}) {
    int found = 0;
    const int arms = 20000;
    for (int i = 0; i < arms; ++i) {
      auto stream = Rng(5).stream("study", seeds, static_cast<uint64_t>(i));
      std::vector<double> values(seeds);
      for (auto& value : values) value = stream.normal();
      found += outlier(values).has_value();
    }
    CHECK(found / static_cast<double>(arms) == Approx(0.01).margin(0.0025));
  }
  // Masses from NIST's handbook of statistics, 1.3.5.17.1.
  const auto furthest = outlier({199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57});
  REQUIRE(furthest);
  CHECK(furthest->index == 7);
  CHECK(furthest->others.mean == Approx(200.842857));
  CHECK_FALSE(outlier({1, 1, 9}));
  CHECK_FALSE(outlier({1, 1, 1, 1}));
}

TEST_CASE("a detectable difference is found with the stated power by simulated studies") {
  const double sd = 0.02, difference = detectable_difference(sd, 5, 0.95, 0.8);
  int found = 0;
  const int studies = 4000;
  for (int i = 0; i < studies; ++i) {
    auto stream = Rng(3).stream("study", 0, static_cast<uint64_t>(i));
    std::vector<double> arm(5), base(5, 0.0);
    for (auto& value : arm) value = difference + sd * stream.normal();
    found += *compare_seeds(arm, base, {}).p < 0.05;
  }
  CHECK(found / static_cast<double>(studies) == Approx(0.8).margin(0.03));
  CHECK(*seeds_for(sd, difference, 0.95, 0.8) == 5);
}

TEST_CASE("detectable differences have the stated power by the noncentral t distribution, also of two seeds") {
  for (const auto& expected : reference()["power"]) {
    const auto seeds = expected["seeds"].get<int64_t>();
    const double found = detectable_difference(1, seeds, expected["confidence"], expected["power"]);
    CHECK(found == Approx(expected["difference"].get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("intervals of runs that differ by nothing hold zero in 95 of 100 studies, over seeds and examples") {
  int by_seeds = 0, by_both = 0;
  std::vector<double> p;
  const int studies = 400;
  for (int i = 0; i < studies; ++i) {
    auto stream = Rng(5).stream("study", 0, static_cast<uint64_t>(i));
    std::vector<ExampleLosses> arm(5), base(5);
    for (auto* runs : {&arm, &base})
      for (auto& run : *runs) {
        const double of_seed = 0.05 * stream.normal();
        for (int e = 0; e < 20; ++e)
          run.sum.push_back(10 * (3 + of_seed + 0.05 * stream.normal())), run.count.push_back(10);
      }
    const ComparisonRules rules{.resamples = 400};
    const auto found = compare_seeds(values(arm), values(base), rules);
    by_seeds += found.t_interval->holds(0);
    by_both += expanded_percentiles(bootstrap(arm, base, rules), 5, 0.95).holds(0);
    p.push_back(*found.p);
  }
  CHECK(by_seeds / static_cast<double>(studies) == Approx(0.95).margin(0.03));
  CHECK(by_both / static_cast<double>(studies) == Approx(0.95).margin(0.035));
  CHECK(uniform_test(p).p > 0.05);
}

TEST_CASE("a verdict needs the corrected p and the bootstrap, and a tie needs the equivalence test") {
  const ComparisonRules rules{.margin = 0.01};
  std::vector<Difference> all{difference_of(0.001, 0.9, {-0.05, -0.03}),     // clear
                              difference_of(0.04, 0.9, {-0.05, -0.001}),     // not after Holm
                              difference_of(0.0001, 0.9, {-0.05, 0.001}),    // the bootstrap holds zero
                              difference_of(0.6, 0.01, {-0.004, 0.003}),     // within the margin
                              difference_of(0.0001, 0.01, {0.001, 0.003})};  // there, and too small to matter
  judge(all, rules);
  CHECK(all[0].verdict == Verdict::better);
  CHECK(all[1].verdict == Verdict::undecided);
  CHECK(all[2].verdict == Verdict::undecided);
  CHECK(all[3].verdict == Verdict::tied);
  CHECK(all[4].verdict == Verdict::smaller);
  CHECK(verdict_words(all[0], rules, "nats") == "better by 0.030 to 0.050 nats");
  CHECK(verdict_words(all[3], rules, "nats") == "tied within 0.01 nats");
  CHECK(verdict_words(all[4], rules, "nats") == "tied within 0.01 nats (worse by 0.0010 to 0.0030 nats)");
}

TEST_CASE("a verdict that cannot be told says what the seeds can detect and how many the margin needs") {
  const std::vector<double> arm{3.02, 2.97, 3.05, 3.01, 2.96}, base{3.0, 3.0, 3.0, 3.0, 3.0};
  const ComparisonRules rules{.margin = 0.01};
  std::vector<Difference> all{compare_seeds(arm, base, rules)};
  judge(all, rules);
  CHECK(verdict_words(all[0], rules, "nats") ==
        "cannot be told: 5 seeds detect 0.062 nats, for 0.01 you need " + std::to_string(*all[0].seeds_needed));
}

TEST_CASE("one seed has a difference and no interval, and says so") {
  std::vector<Difference> all{compare_seeds({2.9}, {3.0}, {.margin = 0.01})};
  judge(all, {.margin = 0.01});
  CHECK(all[0].mean == Approx(-0.1));
  CHECK_FALSE(all[0].t_interval);
  CHECK(verdict_words(all[0], {}, "nats") == "one seed: no interval");
}

TEST_CASE("runs that were scored on other examples are refused") {
  const ExampleLosses a{{1, 2}, {1, 1}}, b{{1, 2, 3}, {1, 1, 1}};
  CHECK_THROWS_WITH(bootstrap({a}, {b}, {}), Catch::Contains("runs have losses of 2 and of 3 examples"));
  CHECK_THROWS_WITH(bootstrap({a, a}, {a}, {}), "a bootstrap needs pairs of runs, there are 2 and 1");
  CHECK_THROWS_AS(compare_seeds({1, 2}, {1}, {}), DataError);
}
