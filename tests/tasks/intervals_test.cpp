// Intervals, the bootstrap and comparisons.
#include <cmath>

#include "core/report/significance.h"
#include "core/text.h"
#include "tests/support/catch.h"
#include "core/report/clusters.h"
#include "tasks/scores/bootstrap.h"
#include "tasks/scores/scores.h"

using namespace cloze;

namespace {

struct DrawnItems {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  TaskLabels labels{.names = {"a", "b", "c"}, .written = {"a", "b", "c"}};
};

/// Labels of which nine in ten are right.
DrawnItems drawn_labels(int64_t count) {
  DrawnItems drawn;
  auto stream = Rng(3).stream("labels");
  for (int64_t i = 0; i < count; ++i) {
    const auto gold = static_cast<int64_t>(stream.below(3));
    drawn.items.push_back({.id = std::to_string(i), .gold = label_answer(gold)});
    drawn.predictions.push_back({.answer = {.label = stream.bernoulli(0.9) ? gold : 0}});
  }
  return drawn;
}

/// Normal values with a correlation of 0.6.
DrawnItems drawn_values(int64_t count) {
  DrawnItems drawn;
  auto stream = Rng(4).stream("values");
  for (int64_t i = 0; i < count; ++i) {
    const double x = stream.normal();
    drawn.items.push_back({.id = std::to_string(i), .gold = value_answer(x)});
    drawn.predictions.push_back({.answer = {.value = 0.6 * x + 0.8 * stream.normal()}});
  }
  return drawn;
}

}  // namespace

TEST_CASE("binomial draws have the mean and the variance of their distribution") {
  for (const auto& [n, p] :
       std::vector<std::pair<int64_t, double>>{{20, 0.3}, {50, 0.4}, {100'000, 0.02}, {900, 0.97}}) {
    auto stream = Rng(1).stream("binomial", 0, static_cast<uint64_t>(n));
    const int draws = 20'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const auto k = static_cast<double>(binomial(stream, n, p)) - static_cast<double>(n) * p;
      sum += k;
      squares += k * k;
    }
    const double variance = static_cast<double>(n) * p * (1 - p);
    CHECK(std::abs(sum / draws) < 5 * std::sqrt(variance / draws));
    CHECK(squares / draws == Approx(variance).epsilon(0.06));
  }
}

TEST_CASE("counts of cells that are drawn vary as items that are drawn") {
  // Accuracy is a mean, whose bootstrap has its known standard error.
  const auto drawn = drawn_labels(2000);
  const auto scores = metrics_of("classification", drawn.items, drawn.labels, drawn.predictions);
  const auto* micro = score_of(scores, "f1_micro");  // the same as accuracy here, by the bootstrap
  const double fraction = micro->value, error = std::sqrt(fraction * (1 - fraction) / 2000);
  CHECK((micro->interval->high - micro->interval->low) / (2 * 1.96 * error) == Approx(1).epsilon(0.1));
}

TEST_CASE("the interval of a correlation is that of theory, also where fewer items are drawn than there are") {
  for (const int64_t count : {2000, 60'000}) {
    const auto drawn = drawn_values(count);
    const auto scores = metrics_of("regression", drawn.items, {}, drawn.predictions, {.resamples = 400});
    const auto* pearson = score_of(scores, "pearson");
    const double error = (1 - 0.36) / std::sqrt(static_cast<double>(count));
    CHECK((pearson->interval->high - pearson->interval->low) / (2 * 1.96 * error) == Approx(1).epsilon(0.15));
    CHECK(pearson->interval->low < pearson->value);
    CHECK(pearson->value < pearson->interval->high);
  }
}

namespace {

/// Questions on passages of 1 to 9 questions each, which are all right or all wrong.
DrawnItems questions_on_passages(int64_t passages) {
  DrawnItems drawn;
  auto stream = Rng(5).stream("passages");
  for (int64_t passage = 0; passage < passages; ++passage) {
    const bool is_right = stream.bernoulli(0.7);
    for (int64_t i = 0; i <= passage % 9; ++i) {
      const auto gold = static_cast<int64_t>(stream.below(2));
      drawn.items.push_back({.id = concat(passage, "-", i),
                             .text = concat("question ", i),
                             .second = concat("the passage of number ", passage),
                             .is_pair = true,
                             .gold = label_answer(gold)});
      drawn.predictions.push_back({.answer = {.label = is_right ? gold : 2}});
    }
  }
  return drawn;
}

}  // namespace

TEST_CASE("questions on a passage are not independent: intervals are those over passages") {
  const auto drawn = questions_on_passages(180);
  std::vector<double> right(180), counts(180);
  for (size_t passage = 0, i = 0; passage < 180; ++passage)
    for (size_t end = i + passage % 9 + 1; i < end; ++i) {
      ++counts[passage];
      right[passage] += drawn.predictions[i].answer.label != 2;
    }
  const auto over_passages = clustered_mean(right, counts);  // itself held to NumPy and statsmodels
  const auto scores = metrics_of("classification", drawn.items, drawn.labels, drawn.predictions);
  const auto* accuracy = score_of(scores, "accuracy");
  CHECK(accuracy->value == Approx(over_passages.value));
  CHECK(accuracy->interval->low == Approx(over_passages.interval->low));
  CHECK(accuracy->interval->high == Approx(over_passages.interval->high));
  const auto* micro = score_of(scores, "f1_micro");  // the same score, whose interval is the bootstrap's
  const double width = over_passages.interval->high - over_passages.interval->low;
  CHECK(micro->interval->high - micro->interval->low == Approx(width).epsilon(0.1));
  const auto alone = wilson(over_passages.value * 900, 900);
  CHECK(width > 2 * (alone.high - alone.low));
  // A second prediction for the same items that is right where the first is wrong differs by passages, too.
  auto opposite = drawn.predictions;
  for (size_t i = 0; i < opposite.size(); ++i)
    opposite[i].answer.label = opposite[i].answer.label == 2 ? drawn.items[i].gold.label : 2;
  const auto compared = compare_predictions("classification", drawn.items, drawn.labels, drawn.predictions, opposite);
  const auto& difference = compared.scores.front();
  CHECK(difference.interval->high - difference.interval->low == Approx(2 * width).epsilon(0.1));
}

TEST_CASE("percentiles of few clusters are as far out as Student's t") {
  // Hesterberg 2015: the normal probability of -sqrt(n / (n - 1)) t(0.025, n - 1), by SciPy.
  CHECK(tail_of_draws(10) == Approx(0.00855063902440636));
  CHECK(tail_of_draws(1000) == Approx(0.024804305905564275));
  CHECK(tail_of_draws(1) == 0.025);
}

TEST_CASE("intervals are a function of the seed") {
  const auto drawn = drawn_values(300);
  const auto interval = [&](uint64_t seed) {
    const MetricOptions options{.resamples = 200, .seed = seed};
    const auto scores = metrics_of("regression", drawn.items, {}, drawn.predictions, options);
    return score_of(scores, "spearman")->interval;
  };
  CHECK((interval(1) == interval(1)));
  CHECK((interval(1) != interval(2)));
}

TEST_CASE("McNemar's test is the exact binomial one") {
  CHECK(mcnemar_p(5, 12) == Approx(0.143463134765625).epsilon(1e-12));
  CHECK(mcnemar_p(70, 40) == Approx(0.005447429511444476).epsilon(1e-10));
  CHECK(mcnemar_p(0, 10) == Approx(2.0 / 1024).epsilon(1e-12));
  CHECK(mcnemar_p(4, 4) == 1);
  CHECK(mcnemar_p(0, 0) == 1);
  CHECK(mcnemar_p(3, 4) == 1);
}

TEST_CASE("two sets of predictions are compared on the same items") {
  const auto drawn = drawn_labels(1000);
  auto worse = drawn.predictions;
  for (size_t i = 0; i < worse.size(); i += 20) worse[i].answer.label = 2;
  const auto compared = compare_predictions("classification", drawn.items, drawn.labels, drawn.predictions, worse);
  const auto& accuracy = compared.scores.front();
  CHECK(accuracy.metric == "accuracy");
  CHECK(accuracy.value * 1000 == Approx(static_cast<double>(compared.only_first - compared.only_second)));
  // The same items are drawn for both: the interval is as wide as that of the mean of paired differences.
  const auto changed = static_cast<double>(compared.only_first + compared.only_second);
  const double error = std::sqrt(changed) / 1000;
  CHECK((accuracy.interval->high - accuracy.interval->low) / (2 * 1.96 * error) == Approx(1).epsilon(0.15));
  CHECK(compared.mcnemar.value() < 0.01);
  const auto same =
      compare_predictions("classification", drawn.items, drawn.labels, drawn.predictions, drawn.predictions);
  CHECK(same.scores.front().interval->low == Approx(std::pow(0.025, 1.0 / 1000) - 1));  // none of 1,000 differs
  CHECK(same.mcnemar == 1);
}

TEST_CASE("an interval of figures of 1 or 0 knows how many items they are of") {
  DrawnItems all;
  all.labels = {.names = {"no", "yes"}, .written = {"no", "yes"}};
  for (int64_t i = 0; i < 100; ++i) {
    all.items.push_back({.id = std::to_string(i), .gold = label_answer(i < 20)});
    all.predictions.push_back({.answer = {.label = i < 20}});
  }
  const auto right = metrics_of("classification", all.items, all.labels, all.predictions);
  const auto of_items = wilson(100, 100), of_positives = wilson(20, 20);
  CHECK(score_of(right, "accuracy")->interval->low == of_items.low);
  CHECK(score_of(right, "f1")->interval->low == of_positives.low);
  CHECK(score_of(right, "f1")->interval->high == of_positives.high);
  CHECK(score_of(right, "recall")->interval->low == of_positives.low);
  CHECK(score_of(right, "f1_macro")->interval->low == of_items.low);
  CHECK(score_of(right, "mcc")->interval->low == 2 * of_items.low - 1);
  for (auto& prediction : all.predictions) prediction.answer.label = 1 - prediction.answer.label;
  const auto wrong = metrics_of("classification", all.items, all.labels, all.predictions);
  CHECK(score_of(wrong, "f1")->value == 0);
  CHECK(score_of(wrong, "f1")->interval->high == wilson(0, 100).high);
}
