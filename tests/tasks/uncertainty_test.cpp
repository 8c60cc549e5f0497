// Temperatures, means over passes and conformal sets, against SciPy, the formulas and simulated coverage.
#include "tasks/scores/uncertainty.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "tasks/scores/reliability.h"
#include "tasks/scores/temperature.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct Labelled {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  void add(int64_t label, const std::vector<double>& probabilities) {
    items.push_back({.gold = label_answer(label)});
    const auto likeliest = std::ranges::max_element(probabilities) - probabilities.begin();
    predictions.push_back({.answer = label_answer(likeliest), .probabilities = probabilities});
  }
};

Labelled ten_labelled() {
  Labelled ten;
  ten.add(0, {.7, .2, .1});
  ten.add(1, {.1, .8, .1});
  ten.add(1, {.3, .3, .4});
  ten.add(0, {.5, .25, .25});
  ten.add(2, {.05, .05, .9});
  ten.add(2, {.4, .35, .25});
  ten.add(0, {.2, .6, .2});
  ten.add(2, {.1, .3, .6});
  ten.add(1, {.35, .45, .2});
  ten.add(0, {.9, .06, .04});
  return ten;
}

ItemPrediction pass_of(const std::vector<double>& probabilities) {
  const auto likeliest = std::ranges::max_element(probabilities) - probabilities.begin();
  return {.prediction = {.answer = label_answer(likeliest), .probabilities = probabilities}, .count = 1};
}

/// Probabilities of three labels that are right as often as they say, and the label.
std::pair<std::vector<double>, int64_t> draw_calibrated(Stream& stream) {
  std::vector<double> p;
  double sum = 0;
  for (int k = 0; k < 3; ++k) sum += p.emplace_back(-std::log(1 - stream.uniform()));
  for (auto& one : p) one /= sum;
  double at = stream.uniform();
  int64_t label = 0;
  while (label < 2 && at >= p[static_cast<size_t>(label)]) at -= p[static_cast<size_t>(label++)];
  return {p, label};
}

}  // namespace

TEST_CASE("the temperature is the one of the least loss") {
  const auto ten = ten_labelled();
  const double temperature = fitted_temperature(ten.items, ten.predictions);
  CHECK(temperature == Approx(0.6475289152).epsilon(1e-7));
  const auto first = at_temperature(ten.predictions[0].probabilities, temperature);
  CHECK(first[0] == Approx(0.83751932).epsilon(1e-7));
  CHECK(first[0] + first[1] + first[2] == Approx(1).epsilon(1e-14));
}

TEST_CASE("a temperature that was put on is found again, and of right answers alone it stays within its limits") {
  Rng rng(3);
  auto stream = rng.stream("temperature", 0, 0);
  Labelled hot, right;
  for (int i = 0; i < 20'000; ++i) {
    const auto [p, label] = draw_calibrated(stream);
    hot.add(label, at_temperature(p, 0.5));  // twice as sure as it is right
  }
  CHECK(fitted_temperature(hot.items, hot.predictions) == Approx(2).epsilon(0.03));
  right.add(0, {.9, .1});
  right.add(1, {.2, .8});
  CHECK(fitted_temperature(right.items, right.predictions) == Approx(0.05));
  CHECK(fitted_temperature({{.gold = label_answer(unknown_label)}}, {{.probabilities = {.5, .5}}}) == 1);
  const auto sure = at_temperature({1, 0}, 2);
  CHECK((sure[0] == 1 && sure[1] < 1e-100));
}

TEST_CASE("the mean of passes has their mean probabilities, its entropy, and what label and pass tell of each other") {
  const std::vector passes{pass_of({.9, .1}), pass_of({.2, .8}), pass_of({.1, .9})};
  const auto mean = mean_prediction("classification", passes);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  CHECK(mean.item.prediction.probabilities[1] == Approx(0.6));
  CHECK(mean.item.prediction.answer.label == 1);
  CHECK(mean.item.count == 0);
  CHECK(*mean.uncertainty.entropy == Approx(entropy(0.6)));
  CHECK(*mean.uncertainty.mutual_information ==
        Approx(entropy(0.6) - (entropy(0.9) + entropy(0.8) + entropy(0.9)) / 3));
  const std::vector same{passes[0], passes[0]};
  CHECK(*mean_prediction("classification", same).uncertainty.mutual_information == Approx(0).margin(1e-12));
}

TEST_CASE("the mean of sets has the labels above a half, that of values their deviation, and tags have no mean") {
  const std::vector sets{pass_of({.9, .2, .4}), pass_of({.8, .4, .7})};
  CHECK((mean_prediction("multilabel", sets).item.prediction.answer.labels == std::vector<int64_t>{0, 2}));
  std::vector<ItemPrediction> values(3);
  for (size_t i = 0; i < 3; ++i) values[i].prediction.answer = value_answer(static_cast<double>(i * i));
  const auto mean = mean_prediction("regression", values);
  CHECK(mean.item.prediction.answer.value == Approx(5.0 / 3));
  CHECK(*mean.uncertainty.deviation == Approx(std::sqrt(13.0 / 3)));
  CHECK(no_mean_of("classification").empty());
  CHECK(no_mean_of("choice").empty());
  CHECK(no_mean_of("tagging") == "a task of tagging has no mean of several predictions");
  CHECK_FALSE(no_mean_of("spans").empty());
}

TEST_CASE("conformal sets hold the right label as often as they promise, whatever the temperature") {
  Rng rng(5);
  double held = 0, all = 0;
  for (uint64_t study = 0; study < 200; ++study) {
    auto stream = rng.stream("conformal", 0, study);
    Labelled valid, test;
    for (int i = 0; i < 200; ++i) {
      const auto [p, label] = draw_calibrated(stream);
      (i < 99 ? valid : test).add(label, at_temperature(p, 0.3));
    }
    const ConformalSets sets(0.9, valid.items, valid.predictions);
    for (size_t i = 0; i < test.items.size(); ++i) {
      const auto labels = sets.labels_of(test.predictions[i].probabilities);
      held += std::ranges::count(labels, test.items[i].gold.label);
      ++all;
    }
  }
  CHECK(held / all == Approx(0.9).margin(0.01));
}

TEST_CASE(
    "the quantile of conformal sets is that of the items and one more, and fewer items than it needs are refused") {
  Labelled nine;
  for (int i = 1; i <= 9; ++i) nine.add(0, {0.1 * i, 1 - 0.1 * i});
  const ConformalSets sets(0.8, nine.items, nine.predictions);  // two of ten are left out: those below 0.2
  CHECK((sets.labels_of({0.15, 0.85}) == std::vector<int64_t>{1}));
  CHECK((sets.labels_of({0.25, 0.75}) == std::vector<int64_t>{1, 0}));
  CHECK_THROWS_WITH(ConformalSets(0.95, nine.items, nine.predictions),
                    "sets that hold what is right in 0.95 of cases need at least 19 items of the valid part, which "
                    "has 9; ask for less");
}

TEST_CASE("the picture of reliability has the bins that have items, before and after") {
  const auto ten = ten_labelled();
  const auto svg = reliability_svg("a < b", ten.items, ten.predictions, 0.5);
  CHECK(svg.find("a &lt; b") != svg.npos);
  CHECK(svg.find("at temperature 0.50") != svg.npos);
  CHECK(svg.find("2 items: confidence 0.900, right 1.000") != svg.npos);
}
