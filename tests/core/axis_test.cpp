#include "core/report/axis.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace cloze;

namespace {
std::vector<std::string> texts_of(const Axis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.ticks) texts.push_back(tick_text(axis, tick));
  return texts;
}
using Texts = std::vector<std::string>;
}  // namespace

TEST_CASE("ticks are round numbers with the same decimals") {
  CHECK(texts_of(nice_axis(4.87, 5.43, 5, true)) == Texts{"4.8", "4.9", "5.0", "5.1", "5.2", "5.3", "5.4", "5.5"});
  CHECK(texts_of(nice_axis(0, 100, 5, false)) == Texts{"0", "20", "40", "60", "80", "100"});
  CHECK(texts_of(nice_axis(-0.013, 0.052, 4, true)) == Texts{"−0.02", "0.00", "0.02", "0.04", "0.06"});
  CHECK(texts_of(nice_axis(0, 20e6, 4, false)) == Texts{"0", "5 M", "10 M", "15 M", "20 M"});
}

TEST_CASE("a loose axis ends at ticks, a tight one at its data") {
  const auto loose = nice_axis(0.3, 9.6, 5, true), tight = nice_axis(0.3, 9.6, 5, false);
  CHECK(loose.low == 0);
  CHECK(loose.high == 10);
  CHECK(tight.low == 0.3);
  CHECK(tight.ticks.front() == 2);
  CHECK(tight.fraction(9.6) == 1);
}

TEST_CASE("axes of one value, of nothing and of what is not finite have a width") {
  for (const auto& axis : {nice_axis(5, 5, 5, true), nice_axis(0, 0, 5, true), nice_axis(INFINITY, -INFINITY, 5, true),
                           nice_axis(0, NAN, 5, false)}) {
    CHECK(axis.high > axis.low);
    CHECK(axis.ticks.size() >= 2);
  }
}

TEST_CASE("a logarithmic axis has ticks at round numbers, its ends where no two of these lie between them") {
  CHECK(texts_of(log_axis(900, 60'000)) == Texts{"1 k", "2 k", "5 k", "10 k", "20 k", "50 k"});
  CHECK(texts_of(log_axis(1e3, 1e9)) == Texts{"1 k", "10 k", "100 k", "1 M", "10 M", "100 M", "1 G"});
  CHECK(log_axis(2.2, 4).ticks == std::vector<double>{2.2, 4});
  const auto axis = log_axis(10, 1000);
  CHECK(axis.fraction(100) == Approx(0.5));
  CHECK(axis.at(0.5) == Approx(100));
}
