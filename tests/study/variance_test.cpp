#include <cmath>

#include "study/search/stages.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("streams that are named change with the seed, the others keep the first seed") {
  const Study study(two_arms + "seeds: [4, 7]\nvary: [order, dropout]\n");
  const auto plan = study.stages().compared();
  for (const auto& run : plan.runs) {
    auto train = run.config.train;
    CHECK(rng_of(train, RandomStream::init).seed() == 4);
    CHECK(rng_of(train, RandomStream::masking).seed() == 4);
    CHECK(rng_of(train, RandomStream::order).seed() == static_cast<uint64_t>(run.seed));
    CHECK(rng_of(train, RandomStream::dropout).seed() == static_cast<uint64_t>(run.seed));
  }
  study.run();
  CHECK_THAT(notes_of(study.report()), Catch::Contains("seeds vary order, dropout only"));
}

TEST_CASE("a list of one seed, which reads like a number of seeds, is refused") {
  CHECK(Study(two_arms + "seeds: [7, 9]\n").stages().compared().seeds == std::vector<int64_t>{7, 9});
}

TEST_CASE("a split runs every arm with each stream alone, and its table has the spread that each makes") {
  const Study study("arms: {a: {}, b: {optimizer.learning_rate: 0.2}}\nseeds: 6\nsplit: true\n");
  const auto stages = study.stages();
  REQUIRE(stages.split);
  CHECK(stages.plans[*stages.split].runs.size() == 2 * 4 * 5);  // the first seed is shared with the comparison
  study.run();
  const auto report = study.report();
  REQUIRE(report.tables.size() == 1);
  const auto& rows = report.tables[0].rows;
  REQUIRE(rows.size() == 12);
  CHECK(rows[0][1] == "all streams");
  const auto made = [](const char* name, double sd) {
    std::vector<double> values;
    for (uint64_t seed = 1; seed <= 6; ++seed) values.push_back(sd * Rng(seed).stream(name).normal());
    return summarize(values).sd;
  };
  CHECK(rows[1][1] == "init");
  CHECK(rows[1][2] == "6");
  CHECK(std::stod(rows[1][3]) == Approx(made("init", 0.02)).epsilon(0.01));
  CHECK(std::stod(rows[2][3]) == Approx(made("order", 0.01)).epsilon(0.01));
  CHECK(std::stod(rows[3][3]) == Approx(0).margin(1e-12));
  CHECK(std::stod(rows[4][3]) == Approx(made("dropout", 0.001)).epsilon(0.01));
  const double whole = std::hypot(made("init", 0.02), made("order", 0.01), made("dropout", 0.001));
  CHECK(std::stod(rows[5][3]) == Approx(whole).epsilon(0.01));
  CHECK(std::stod(rows[1][5]) == Approx(100 * std::pow(made("init", 0.02) / whole, 2)).margin(0.51));
}

TEST_CASE("intervals of standard deviations are those of the chi-square distribution") {
  const auto interval = sd_interval(2, 5, 0.95);  // scipy.stats.chi2.ppf([0.975, 0.025], 4)
  CHECK(interval.low == Approx(2 * std::sqrt(4 / 11.143286781877796)).epsilon(1e-12));
  CHECK(interval.high == Approx(2 * std::sqrt(4 / 0.48441855708793014)).epsilon(1e-12));
  CHECK_THROWS_WITH(sd_interval(2, 1, 0.95), Catch::Contains("run more seeds"));
}

TEST_CASE("the spread of the variance leaves out runs whose loss is not finite") {
  const Study study("arms: {a: {}, b: {optimizer.learning_rate: 0.75}}\nseeds: 3\nsplit: true\n");
  study.run();
  const auto report = study.report();
  const auto& rows = report.tables[0].rows;
  REQUIRE(rows.size() == 12);
  CHECK(rows[0][2] == "3");
  for (size_t row = 6; row < 11; ++row) CHECK(rows[row][2] == "0");
}
