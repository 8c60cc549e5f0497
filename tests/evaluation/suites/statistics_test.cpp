// Intervals and correlations against SciPy and statsmodels.
#include "evaluation/suites/statistics.h"

#include <limits>

#include "tests/evaluation/suites/reference.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("intervals of shares are Wilson's", "[suites]") {
  const auto cases = reference("statistics.json", "shares");
  for (const auto& one : cases) {
    const auto found = wilson(one["right"], one["count"]);
    INFO(one.dump());
    CHECK(found.low == Approx(one["low"].get<double>()).margin(1e-12));
    CHECK(found.high == Approx(one["high"].get<double>()).margin(1e-12));
  }
  CHECK(wilson(0, 7).low == 0);  // without rounding: an interval holds its value
  CHECK(wilson(7, 7).high == 1);
  CHECK(wilson(2.5, 5).low == Approx(1 - wilson(2.5, 5).high));  // a tie is a half
}

TEST_CASE("intervals of means over clusters are those of cluster-robust regression on a constant", "[suites]") {
  const auto cases = reference("statistics.json", "clusters");
  for (const auto& one : cases) {
    const auto sums = one["sums"].get<std::vector<double>>(), counts = one["counts"].get<std::vector<double>>();
    const auto found = clustered_mean(sums, counts);
    INFO(one.dump());
    CHECK(found.value == Approx(one["mean"].get<double>()));
    REQUIRE(found.interval);
    CHECK(found.interval->low == Approx(one["low"].get<double>()));
    CHECK(found.interval->high == Approx(one["high"].get<double>()));
  }
  CHECK_FALSE(clustered_mean(std::vector<double>{7}, std::vector<double>{10}).interval);
}

TEST_CASE("a mean over clusters has the interval of Student's t over their means", "[suites]") {
  const std::vector<double> means{0.5, 0.7, 0.9}, ones(3, 1);
  const auto found = clustered_mean(means, ones);
  CHECK(found.value == Approx(0.7));
  CHECK(found.interval->high - found.value == Approx(4.302652729749464 * 0.2 / std::sqrt(3.0)));  // t(0.975, 2)
}

TEST_CASE("Spearman's correlation is SciPy's, with mean ranks for equal values", "[suites]") {
  const auto cases = reference("statistics.json", "pairs");
  for (const auto& one : cases) {
    const auto a = one["a"].get<std::vector<double>>(), b = one["b"].get<std::vector<double>>();
    CHECK(ranks(a) == one["ranks"].get<std::vector<double>>());
    const auto found = spearman(a, b);
    REQUIRE(found);
    CHECK(*found == Approx(one["spearman"].get<double>()));
    const auto bounds = spearman_interval(*found, static_cast<int64_t>(a.size()));
    REQUIRE(bounds);
    CHECK((bounds->low < *found && *found < bounds->high));
  }
  CHECK_FALSE(spearman(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3}));
  CHECK_FALSE(spearman(std::vector<double>{1}, std::vector<double>{1}));
  CHECK_FALSE(spearman_interval(0.5, 3));
  CHECK(spearman_interval(1, 20) == Bounds{1, 1});
  const auto known = spearman_interval(0.6, 50);  // tanh(atanh(0.6) -+ 1.95996 sqrt(1.18 / 47))
  CHECK(known->low == Approx(0.36495549337416217));
  CHECK(known->high == Approx(0.7631450878478065));
}

TEST_CASE("the interval of shares is in [0, 1], and not narrower than that of as many independent items") {
  const auto alone = fraction_interval({.value = 0.5}, 10);
  CHECK(alone.low == Approx(wilson(5, 10).low));
  CHECK(alone.high == Approx(wilson(5, 10).high));
  const std::vector<double> alike{0, 0, 0}, apart{0, 0, 0.1}, ones{1, 1, 1};
  CHECK(fraction_interval(clustered_mean(alike, ones), 30).high == Approx(wilson(0, 30).high));
  const auto wide = clustered_mean(apart, ones);
  REQUIRE(wide.interval->low < 0);
  CHECK(fraction_interval(wide, 3000).low == 0);
  CHECK(fraction_interval(wide, 3000).high == wide.interval->high);
}

TEST_CASE("a value that is no number has a rank of its own, after all others, and no correlation", "[suites]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(ranks(std::vector<double>{nan, 2, nan, 1, 2})[1] == 2.5);
  CHECK(ranks(std::vector<double>{nan, 2, nan, 1, 2})[3] == 1);
  CHECK(ranks(std::vector<double>{nan, nan}) != std::vector<double>{1.5, 1.5});
  CHECK_FALSE(spearman(std::vector<double>{1, nan, 3}, std::vector<double>{1, 2, 3}));
  CHECK_FALSE(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{nan, nan, nan}));
}
