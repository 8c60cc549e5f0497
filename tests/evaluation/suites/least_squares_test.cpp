// Linear regressions against statsmodels.
#include "evaluation/suites/least_squares.h"

#include <cmath>

#include "core/error.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

TEST_CASE("a regression has the coefficients and the R2 of statsmodels, whatever the size of its columns",
          "[suites][ols]") {
  for (const auto& one : reference("regressions.json", "least_squares")) {
    const auto columns = one["columns"].get<std::vector<std::vector<double>>>();
    const auto fit = least_squares(columns, one["target"].get<std::vector<double>>());
    CHECK(fit.intercept == Approx(one["intercept"].get<double>()).epsilon(1e-9));
    REQUIRE(fit.coefficients.size() == columns.size());
    for (size_t k = 0; k < columns.size(); ++k)
      CHECK(fit.coefficients[k] == Approx(one["coefficients"][k].get<double>()).epsilon(1e-9));
    CHECK(fit.r2 == Approx(one["r2"].get<double>()).epsilon(1e-12));
    CHECK(fit.rank == static_cast<int64_t>(columns.size()));
  }
}

TEST_CASE("columns that others determine change neither the fit nor its R2", "[suites][ols]") {
  const auto one = reference("regressions.json", "least_squares")[1];
  auto columns = one["columns"].get<std::vector<std::vector<double>>>();
  const auto target = one["target"].get<std::vector<double>>();
  const auto before = least_squares(columns, target);
  auto sum = columns[0];
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = 2 * sum[i] - columns[1][i] + 7;
  columns.push_back(sum);
  columns.emplace_back(sum.size(), 0.1);  // a constant, as the intercept is
  const auto after = least_squares(columns, target);
  CHECK(after.rank == before.rank);
  CHECK(after.r2 == Approx(before.r2).epsilon(1e-12));
  CHECK(after.coefficients.back() == 0);
}

TEST_CASE("a regression that has no answer is refused", "[suites][ols]") {
  const std::vector<double> x{1, 2, 4, 8}, y{1, 3, 2, 5};
  CHECK_THROWS_WITH(least_squares({x, y}, {1, 2, 3}),
                    Contains("with 3 unknowns needs more rows than that; there are 3"));
  CHECK_THROWS_WITH(least_squares({x}, {1, 2, 3}), Contains("columns of 4 and 3 rows"));
  CHECK_THROWS_WITH(least_squares({x}, {3, 3, 3, 3}), Contains("is the same in all rows"));
  CHECK_THROWS_WITH(least_squares({x}, {3, 3, 3, NAN}), Contains("target of a regression is not finite"));
  CHECK_THROWS_WITH(least_squares({{1, 2, 3, INFINITY}}, y), Contains("predictor of a regression is not finite"));
  CHECK_THROWS_AS(least_squares({x}, {3, 3, 3, 3}), DataError);
}
