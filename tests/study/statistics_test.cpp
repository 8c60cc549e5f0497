#include "study/statistics/statistics.h"

#include <algorithm>
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

/// The runs of an arm or of the baseline of a study of the reference.
std::vector<ExampleLosses> runs(const json& study, const char* arm) {
  std::vector<ExampleLosses> losses;
  for (const auto& run : study[arm])
    losses.push_back({.sum = run, .count = study["counts"], .documents = study["documents"]});
  return losses;
}

std::vector<double> values(const std::vector<ExampleLosses>& runs) {
  std::vector<double> found;
  for (const auto& run : runs) found.push_back(run.value());
  return found;
}

/// The Kolmogorov-Smirnov test of values against the uniform distribution on [0, 1].
struct UniformTest {
  double statistic = 0;  ///< the largest distance between the two distribution functions
  double p = 1;          ///< two-sided, by Kolmogorov's limit with Stephens' correction for n
};

UniformTest uniform_test(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  UniformTest test;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto rank = static_cast<double>(i);
    test.statistic = std::max({test.statistic, values[i] - rank / n, (rank + 1) / n - values[i]});
  }
  const double x = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * test.statistic;
  double p = 0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  test.p = std::clamp(x < 0.2 ? 1.0 : p, 0.0, 1.0);
  return test;
}

using Runs = std::vector<const ExampleLosses*>;

Runs pointers(const std::vector<ExampleLosses>& runs) {
  Runs found;
  for (const auto& run : runs) found.push_back(&run);
  return found;
}

Approx near(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }

/// A run whose value is `of_seed`, plus what each example adds.
ExampleLosses run_of(double of_seed, const std::vector<double>& of_examples) {
  ExampleLosses run;
  for (const double one : of_examples) {
    run.sum.push_back(10 * (3 + of_seed + one));
    run.count.push_back(10);
  }
  return run;
}

std::vector<double> draws(Stream& stream, size_t count, double sd) {
  std::vector<double> found(count);
  for (auto& one : found) one = sd * stream.normal();
  return found;
}

}  // namespace

TEST_CASE("paired differences agree with SciPy: mean, t interval, p, equivalence, seeds needed") {
  for (const auto& expected : reference()["comparisons"]) {
    const auto arm = runs(expected, "arm"), base = runs(expected, "baseline");
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

TEST_CASE("the error of examples, and the interval and p of seeds and examples, agree with NumPy and SciPy") {
  for (const auto& expected : reference()["comparisons"]) {
    const auto arm = runs(expected, "arm"), base = runs(expected, "baseline");
    const auto examples = example_error(pointers(arm), pointers(base));
    CHECK(examples.error == near(expected["example_error"]));
    CHECK(examples.freedom == near(expected["freedom"]));
    auto share = paired_t_test(values(arm), values(base), {});
    share.examples = examples;
    share.sd *= 100;  // in points
    share.examples.error *= 100;
    share.examples.items = examples.count;
    CHECK(error_of(share).reach(0.05) == near(expected["reach_of_share"]));
    const auto found = compare_seeds(values(arm), values(base), {.margin = 0.01, .arms = 3}, examples);
    CHECK(found.interval->low == near(expected["interval_of_three"][0]));
    CHECK(found.interval->high == near(expected["interval_of_three"][1]));
    CHECK(*found.p == near(expected["p_crossed"]));
    CHECK(*found.p_corrected == near(std::min(1.0, 3 * expected["p_crossed"].get<double>())));
  }
}

TEST_CASE("the interval of several arms is off zero where the corrected p is below the level") {
  const std::vector<double> arm{2.95, 2.97, 2.98, 2.96}, base(4, 3.0);
  for (const int64_t arms : {1, 2, 9, 60}) {
    const auto found = compare_seeds(arm, base, {.arms = arms}, {.error = 0.004, .freedom = 39});
    CHECK(found.interval->holds(0) == (*found.p_corrected >= 0.05));
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
  const double sd = 0.02, difference = detectable_difference(sd, 5, 0.05, 0.8);
  int found = 0;
  const int studies = 4000;
  for (int i = 0; i < studies; ++i) {
    auto stream = Rng(3).stream("study", 0, static_cast<uint64_t>(i));
    std::vector<double> arm(5), base(5, 0.0);
    for (auto& value : arm) value = difference + sd * stream.normal();
    found += *compare_seeds(arm, base, {}).p < 0.05;
  }
  CHECK(found / static_cast<double>(studies) == Approx(0.8).margin(0.03));
  CHECK(*seeds_for(sd, difference, 0.05, 0.8) == 5);
}

TEST_CASE("detectable differences have the stated power by the noncentral t distribution, also of two seeds") {
  for (const auto& expected : reference()["power"]) {
    const auto seeds = expected["seeds"].get<int64_t>();
    const double found = detectable_difference(1, seeds, 1 - expected["confidence"].get<double>(), expected["power"]);
    CHECK(found == Approx(expected["difference"].get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("detectable differences count the noise of examples, as an integral in SciPy does") {
  for (const auto& expected : reference()["crossed_power"]) {
    const ExampleError examples{.error = expected["error"], .freedom = expected["examples"].get<double>() - 1};
    const auto seeds = expected["seeds"].get<int64_t>();
    const double found = detectable_difference(1, seeds, expected["level"], expected["power"], examples);
    CHECK(found == Approx(expected["difference"].get<double>()).epsilon(1e-7));
    CHECK(*seeds_for(1, 1.0001 * found, expected["level"], expected["power"], examples) == seeds);
  }
}

TEST_CASE("no number of seeds finds a difference that is below the noise of the examples") {
  CHECK_FALSE(seeds_for(0.02, 0.01, 0.05, 0.8, {.error = 0.005, .freedom = 99}));
  CHECK(seeds_for(0.02, 0.01, 0.05, 0.8, {.error = 0.001, .freedom = 99}));
  const auto found = compare_seeds({3.02, 2.98, 3.01}, {3, 3, 3}, {.margin = 0.01}, {.error = 0.01, .freedom = 99});
  CHECK_THAT(verdict_words(found, {.margin = 0.01}, "nats"), Catch::Contains(", 0.01 is out of reach"));
}

TEST_CASE("intervals hold the true difference in 95 of 100 studies, where seeds differ and where examples do") {
  for (const double of_example : {0.0, 0.1, 1.0}) {
    int held = 0;
    std::vector<double> p;
    const int studies = 1000;
    for (int i = 0; i < studies; ++i) {
      auto stream = Rng(5).stream("study", 0, static_cast<uint64_t>(i));
      const auto shared = draws(stream, 40, of_example);  // what the arm does to an example, whatever its seed
      std::vector<ExampleLosses> arm, base;
      for (int seed = 0; seed < 5; ++seed) {
        auto own = draws(stream, 40, 0.05);
        for (size_t e = 0; e < own.size(); ++e) own[e] += shared[e];
        arm.push_back(run_of(0.05 * stream.normal(), own));
        base.push_back(run_of(0.05 * stream.normal(), draws(stream, 40, 0.05)));
      }
      const auto found = compare_seeds(values(arm), values(base), {}, example_error(pointers(arm), pointers(base)));
      held += found.interval->holds(0);
      p.push_back(*found.p);
    }
    CHECK(held / static_cast<double>(studies) == Approx(0.955).margin(0.025));
    if (of_example == 0) CHECK(uniform_test(p).p > 0.05);
  }
}

TEST_CASE("examples of a document are not independent: the interval holds as often as it says, whatever they share") {
  for (const double shared : {0.0, 0.5, 1.0}) {  // what an arm does to a document rather than to an example
    int held = 0, held_by_rows = 0;
    const int studies = 1000;
    for (int i = 0; i < studies; ++i) {
      auto stream = Rng(7).stream("study", 0, static_cast<uint64_t>(i));
      std::vector<uint64_t> documents;
      std::vector<double> of_examples;
      for (uint64_t document = 0; document < 20; ++document) {
        const double own = 0.1 * shared * stream.normal();
        for (uint64_t e = 0; e < 5 + document; ++e) {
          documents.push_back(document);
          of_examples.push_back(own + 0.1 * stream.normal());
        }
      }
      std::vector<ExampleLosses> arm, base;
      for (int seed = 0; seed < 10; ++seed) {
        arm.push_back(run_of(0.002 * stream.normal(), of_examples));
        base.push_back(run_of(0.002 * stream.normal(), std::vector<double>(of_examples.size())));
      }
      const auto holds = [&] {
        return compare_seeds(values(arm), values(base), {}, example_error(pointers(arm), pointers(base)))
            .interval->holds(0);
      };
      held_by_rows += holds();
      for (auto* runs : {&arm, &base})
        for (auto& run : *runs) run.documents = documents;
      held += holds();
    }
    CHECK(held / static_cast<double>(studies) == Approx(0.955).margin(0.025));
    if (shared == 1) CHECK(held_by_rows / static_cast<double>(studies) < 0.75);
  }
}

TEST_CASE("of one document, and without documents, each example counts") {
  const std::vector<double> of_examples{0.1, -0.2, 0.3, 0};
  std::vector<ExampleLosses> arm{run_of(0, of_examples), run_of(0, of_examples)}, base(2, run_of(0, {0, 0, 0, 0}));
  const auto without = example_error(pointers(arm), pointers(base));
  for (auto* runs : {&arm, &base})
    for (auto& run : *runs) run.documents = {7, 7, 7, 7};
  const auto of_one = example_error(pointers(arm), pointers(base));
  CHECK(without.clusters == 4);
  CHECK(of_one.error == without.error);
  CHECK(of_one.freedom == 3);
}

TEST_CASE("arms that answer all items alike are tied only where so many items exclude the margin") {
  // Clopper and Pearson: none of n items leaves 1 - 0.025^(1 / n), 3.6 points of 100 and 0.37 points of 1,000.
  const std::vector<double> all_right{100, 100};
  const auto alike = [&](int64_t items, double margin) {
    return compare_seeds(all_right, all_right, {.margin = margin, .higher_is_better = true},
                         {.count = items, .items = items});
  };
  CHECK(alike(20, 1).verdict == Verdict::undecided);
  CHECK(alike(20, 1).interval->high == Approx(16.8433478));
  CHECK(alike(100, 3).verdict == Verdict::undecided);
  CHECK(alike(100, 4).verdict == Verdict::tied);
  CHECK(alike(1000, 1).verdict == Verdict::tied);
  CHECK(*alike(20, 1).p == 1);
  CHECK(*alike(1000, 1).p_equivalence < 0.05);
  CHECK_FALSE(alike(20, 1).seeds_needed);
  CHECK_THAT(verdict_words(alike(20, 1), {.margin = 1}, "points"), Catch::Contains("1 is out of reach"));
}

TEST_CASE("the interval alone gives the verdict") {
  const ComparisonRules rules{.margin = 0.01};
  CHECK(verdict_of({-0.05, -0.03}, rules) == Verdict::better);
  CHECK(verdict_of({0.03, 0.05}, rules) == Verdict::worse);
  CHECK(verdict_of({0.03, 0.05}, {.margin = 0.01, .higher_is_better = true}) == Verdict::better);
  CHECK(verdict_of({-0.05, 0.001}, rules) == Verdict::undecided);
  CHECK(verdict_of({-0.004, 0.003}, rules) == Verdict::tied);
  CHECK(verdict_of({-0.01, 0.003}, rules) == Verdict::undecided);  // the margin is a difference that matters
  CHECK(verdict_of({0.001, 0.003}, rules) == Verdict::smaller);
  CHECK(verdict_of({-0.004, 0.003}, {}) == Verdict::undecided);  // no margin is stated
}

TEST_CASE("a verdict names its interval, and over how many arms it is simultaneous") {
  ComparisonRules rules{.margin = 0.01};
  const Difference better{.mean = -0.04, .interval = Interval{-0.05, -0.03}, .verdict = Verdict::better};
  const Difference smaller{.mean = 0.002, .interval = Interval{0.001, 0.003}, .verdict = Verdict::smaller};
  CHECK(verdict_words(better, rules, "nats") == "better by 0.030 to 0.050 nats");
  CHECK(verdict_words(smaller, rules, "nats") == "tied within 0.01 nats (worse by 0.0010 to 0.0030 nats)");
  CHECK(verdict_words({.verdict = Verdict::tied}, rules, "nats") == "tied within 0.01 nats");
  CHECK(verdict_words({.verdict = Verdict::tied}, {.margin = 1}, "points") == "tied within 1 point");
  rules.arms = 3;
  CHECK(verdict_words(better, rules, "nats") == "better by 0.030 to 0.050 nats (simultaneous over 3 comparisons)");
  CHECK(verdict_words(smaller, rules, "nats") ==
        "tied within 0.01 nats (worse by 0.0010 to 0.0030 nats, simultaneous over 3 comparisons)");
}

TEST_CASE("an inconclusive verdict says what the seeds can detect and between what numbers the margin needs") {
  const std::vector<double> arm{3.02, 2.97, 3.05, 3.01, 2.96}, base{3.0, 3.0, 3.0, 3.0, 3.0};
  const ComparisonRules rules{.margin = 0.01};
  const auto found = compare_seeds(arm, base, rules);
  CHECK(*found.seeds_range.low < *found.seeds_needed);
  CHECK(*found.seeds_needed < *found.seeds_range.high);
  CHECK(found.detectable_range->low < *found.detectable);
  CHECK(*found.detectable < found.detectable_range->high);
  CHECK(verdict_words(found, rules, "nats") ==
        concat("inconclusive: 5 seeds detect 0.045 to 0.121 nats, for 0.01 you need ", *found.seeds_range.low, " to ",
               *found.seeds_range.high));
  CHECK(*compare_seeds(arm, base, {.margin = 0.01, .arms = 9}).detectable > *found.detectable);
}

TEST_CASE("one seed has a difference and no interval, and says so") {
  const auto found = compare_seeds({2.9}, {3.0}, {.margin = 0.01});
  CHECK(found.mean == Approx(-0.1));
  CHECK_FALSE(found.interval);
  CHECK(verdict_words(found, {}, "nats") == "one seed: no interval");
}

TEST_CASE("runs that were scored on other examples are refused") {
  const ExampleLosses a{{1, 2}, {1, 1}}, b{{1, 2, 3}, {1, 1, 1}};
  CHECK_THROWS_WITH(example_error({&b, &b}, {&a, &a}), Catch::Contains("runs have losses of 3 and of 2 examples"));
  CHECK_THROWS_AS(compare_seeds({1, 2}, {1}, {}), DataError);
}
