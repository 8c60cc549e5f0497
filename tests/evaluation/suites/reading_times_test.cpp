// Tables of reading times, and gains against statsmodels' formulas.
#include "evaluation/suites/reading_times.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/evaluation/suites/reading_table.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

TEST_CASE("gains of surprisal are those of statsmodels, with the rows that have no gaps", "[suites][reading]") {
  const auto all = reference("regressions.json", "reading");
  const auto& columns = all["columns"];
  ReadingTimes times{.log_frequency = numbers_of(columns["Subtlex_log10"]),
                     .length = numbers_of(columns["length"]),
                     .context_length = numbers_of(columns["context_length"]),
                     .previous_length = numbers_of(columns["prev_length"])};
  for (const std::string name : {"RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound"})
    times.eye_tracking.push_back({name, numbers_of(columns[name])});
  times.self_paced = {"self_paced_reading_time", numbers_of(columns["self_paced_reading_time"])};
  const auto gains = reading_gains(times, numbers_of(columns["pred"]), numbers_of(columns["prev_pred"]));
  REQUIRE(gains.eye_tracking.size() == 4);
  double sum = 0;
  for (size_t m = 0; m < 5; ++m) {
    const auto& found = m < 4 ? gains.eye_tracking[m] : gains.self_paced;
    const auto& wanted = all["gains"][m];
    INFO(wanted.dump());
    CHECK(found.measure == wanted["measure"]);
    CHECK(found.count == wanted["count"]);
    const double before = wanted["baseline_r2"], after = wanted["r2"];
    CHECK(found.baseline_r2 == Approx(before).epsilon(1e-11));
    CHECK(found.r2 == Approx(after).epsilon(1e-11));
    CHECK(found.value() == Approx((after - before) / (1 - before)).epsilon(1e-10));
    if (m < 4) sum += (after - before) / (1 - before);
  }
  CHECK(gains.eye_tracking_mean() == Approx(sum / 4).epsilon(1e-10));
}

TEST_CASE("intervals of gains are those of leaving out one word after the other", "[suites][reading]") {
  constexpr size_t count = 250;
  auto stream = Rng(3).stream("words");
  const auto column = [&] {
    std::vector<double> values(count);
    for (auto& value : values) value = stream.normal();
    return values;
  };
  ReadingTimes times{
      .log_frequency = column(), .length = column(), .context_length = column(), .previous_length = column()};
  const auto surprisal = column(), previous = column();
  auto seen = column();
  for (size_t i = 0; i < count; ++i) seen[i] += times.length[i] + 0.5 * surprisal[i];
  times.eye_tracking = {{"a", seen}, {"b", seen}};
  for (auto& value : times.eye_tracking[1].times) value += stream.normal();
  times.self_paced = {"c", seen};
  const auto scores = [&](const ReadingTimes& of) {
    const auto gains = reading_gains(of, surprisal, previous);
    const auto &a = gains.eye_tracking[0], &b = gains.eye_tracking[1];
    return std::vector{a.partial_r2(), a.delta_r2(), mean_of({a.partial_r2(), b.partial_r2()})};
  };
  const auto whole = scores(times);
  std::vector<std::vector<double>> without(whole.size());
  for (size_t i = 0; i < count; ++i) {
    auto fewer = times;
    for (auto& measure : fewer.eye_tracking) measure.times[i] = NAN;
    const auto found = scores(fewer);
    for (size_t k = 0; k < found.size(); ++k) without[k].push_back(found[k].value);
  }
  for (size_t k = 0; k < whole.size(); ++k) {
    double mean = 0, squares = 0;
    for (const double value : without[k]) mean += value / count;
    for (const double value : without[k]) squares += (value - mean) * (value - mean);
    const double error = std::sqrt(squares * (count - 1) / count);
    CHECK(whole[k].reach() == Approx(1.96 * error).epsilon(0.1));
  }
}

TEST_CASE("words of a table have their contexts, and the first of a sentence has none before it", "[suites][reading]") {
  const auto times = reading_times_of(parse_csv(reading_table(12), "times.csv"));
  REQUIRE(times.words.size() == 12);
  CHECK(times.words[1] == WordInContext{"the", "cats"});
  CHECK_FALSE(times.previous[0]);
  CHECK_FALSE(times.previous[1]);  // its context is the word that pandas takes for missing
  CHECK(times.previous[2] == WordInContext{"the", "cats"});
  CHECK(times.words[4] == WordInContext{"None", "see"});
  CHECK(times.length[1] == 4);
  CHECK(std::isnan(times.previous_length[0]));
  REQUIRE(times.eye_tracking.size() == 4);
  CHECK(times.eye_tracking[2].name == "RTgopast");
  CHECK(is_reading_table(parse_csv(reading_table(3), "times.csv")));
  CHECK_FALSE(is_reading_table(parse_csv("item,word\na,b\n", "times.csv")));
}

TEST_CASE("a table of reading times that lacks a word or a column is refused with its place", "[suites][reading]") {
  const auto refused = [](std::string text, const std::string& part, const std::string& by, const std::string& says) {
    text.replace(text.find(part), part.size(), by);
    CHECK_THROWS_AS(reading_times_of(parse_csv(text, "times.csv")), DataError);
    CHECK_THROWS_WITH(reading_times_of(parse_csv(text, "times.csv")), Contains(says));
  };
  const auto whole = reading_table(6);
  refused(whole, "the,cats,", "the,,", "times.csv:3: column 'word' is empty");
  refused(whole, ",the,cats,", ",the,NA,", "times.csv:4: has 'prev_item' without 'prev_word'");
  refused(whole, "RTgopast", "RTgone", "times.csv: has no column 'RTgopast'");
  refused(whole, "context_length", "depth", "times.csv: has no column 'context_length'");
  CHECK_THROWS_WITH(reading_times_of(parse_csv(whole.substr(0, whole.find('\n') + 1), "times.csv")),
                    Contains("times.csv: has no words below its header"));
  const auto few = reading_times_of(parse_csv(reading_table(5), "times.csv"));
  CHECK_THROWS_WITH(reading_gains(few, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}),
                    Contains("unknowns needs more rows than that"));
}
