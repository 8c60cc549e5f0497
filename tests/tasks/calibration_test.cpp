// What probabilities are worth, and metrics of numbers, against scikit-learn 1.9.1 and SciPy 1.17; bins against numpy.
#include <cmath>

#include "tests/support/catch.h"
#include "tasks/scores/scores.h"
#include "tasks/scores/task_metric.h"
#include "tasks/scores/task_scorer.h"

using namespace cloze;

namespace {

/// Items with predictions, of a kind.
struct ScoredCase {
  AnyTaskKind kind{};
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  TaskLabels labels{};

  double value(const std::string& metric) const {
    const TaskScores scores{.scores = values_of(kind, items, labels, predictions)};
    const auto* score = score_of(scores, metric);
    REQUIRE(score);
    return score->is_defined() ? score->value : std::nan("");
  }
  /// The same items, of which the i-th comes times[i] times.
  ScoredCase repeated(const std::vector<int64_t>& times) const {
    ScoredCase many{.kind = kind, .labels = labels};
    for (size_t i = 0; i < items.size(); ++i)
      for (int64_t k = 0; k < times[i]; ++k) {
        many.items.push_back(items[i]);
        many.predictions.push_back(predictions[i]);
      }
    return many;
  }
};

ScoredCase with_probabilities(const std::vector<int64_t>& gold, const std::vector<std::vector<double>>& rows) {
  ScoredCase made{.kind = "classification"};
  for (size_t label = 0; label < rows[0].size(); ++label) made.labels.names.push_back("l" + std::to_string(label));
  made.labels.written = made.labels.names;
  for (size_t i = 0; i < gold.size(); ++i) {
    made.items.push_back({.id = std::to_string(i), .gold = label_answer(gold[i])});
    const auto likeliest = std::ranges::max_element(rows[i]) - rows[i].begin();
    made.predictions.push_back({.answer = label_answer(likeliest), .probabilities = rows[i]});
  }
  return made;
}

ScoredCase ten_items() {
  return with_probabilities({0, 1, 1, 0, 2, 2, 0, 2, 1, 0}, {{.7, .2, .1},
                                                             {.1, .8, .1},
                                                             {.3, .3, .4},
                                                             {.5, .25, .25},
                                                             {.05, .05, .9},
                                                             {.4, .35, .25},
                                                             {.2, .6, .2},
                                                             {.1, .3, .6},
                                                             {.35, .45, .2},
                                                             {.9, .06, .04}});
}

ScoredCase six_numbers() {
  ScoredCase made{.kind = "regression"};
  const std::vector<double> gold{1, 2.5, 2.5, 4, 3.25, 5}, predicted{1.5, 2, 2.75, 3.5, 3.5, 4.125};
  for (size_t i = 0; i < gold.size(); ++i) {
    made.items.push_back({.id = std::to_string(i), .gold = value_answer(gold[i])});
    made.predictions.push_back({.answer = value_answer(predicted[i])});
  }
  return made;
}

}  // namespace

TEST_CASE("what probabilities are worth is as scikit-learn and the definitions of bins have it") {
  const auto ten = ten_items();
  for (const auto& [metric, value] : {std::pair{"nll", 0.6992725104992228},
                                      {"brier", 0.39552},
                                      {"ece", 0.275},
                                      {"ece_mass", 0.355},
                                      {"aurc", 0.10567460317460317},
                                      {"auc_right", 0.8809523809523809},
                                      {"auc_macro", 0.878968253968254},
                                      {"average_precision_macro", 0.8272486772486772},
                                      {"balanced_accuracy", 0.6944444444444443}}) {
    INFO(metric);
    CHECK(ten.value(metric) == Approx(value).epsilon(1e-12));
  }
}

TEST_CASE("of two labels the Brier score is half of it, and average precision that of the second label") {
  std::vector<std::vector<double>> rows;
  for (const double p : {.1, .4, .35, .8, .8, .8, .6, .2}) rows.push_back({1 - p, p});
  const auto eight = with_probabilities({0, 0, 1, 1, 1, 0, 1, 0}, rows);
  CHECK(eight.value("average_precision") == Approx(0.6875).epsilon(1e-12));
  CHECK(eight.value("auc") == Approx(0.75).epsilon(1e-12));
  CHECK(eight.value("brier") == Approx(0.1890625).epsilon(1e-12));
  CHECK(eight.value("nll") == Approx(0.5569628067581519).epsilon(1e-12));
}

TEST_CASE("Kendall's tau, the absolute error and the explained variance are those of SciPy and scikit-learn") {
  const auto six = six_numbers();
  CHECK(six.value("kendall") == Approx(0.9285714285714286).epsilon(1e-12));
  CHECK(six.value("mae") == Approx(0.4791666666666667).epsilon(1e-12));
  CHECK(six.value("r2") == Approx(0.8282442748091603).epsilon(1e-12));
}

TEST_CASE("items that a draw takes several times count as if they stood there so often") {
  for (const auto& few : {ten_items(), six_numbers()}) {
    std::vector<int64_t> times;
    for (size_t i = 0; i < few.items.size(); ++i) times.push_back(static_cast<int64_t>(i * i % 4));
    const auto many = few.repeated(times);
    const MetricOptions options;
    ScoredItems scored{.kind = few.kind, .labels = &few.labels, .options = &options};
    for (size_t i = 0; i < few.items.size(); ++i) {
      scored.items.push_back(&few.items[i]);
      scored.predictions.push_back(&few.predictions[i]);
    }
    for (const auto& make : few.kind->scorers(scored)) {
      const auto scorer = make(scored);
      std::vector<int64_t> weights(scorer.cells);
      for (size_t i = 0; i < times.size(); ++i) weights[scorer.cell_of[i]] += times[i];
      std::vector<double> values(scorer.metrics.size());
      scorer.values(weights, values);
      for (size_t m = 0; m < values.size(); ++m) {
        INFO(scorer.metrics[m].name);
        CHECK(values[m] == Approx(many.value(scorer.metrics[m].name)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE(
    "probabilities that tell nothing have the calibration of the majority, and a label that nobody knows is wrong") {
  const auto constant = with_probabilities({0, 0, 0, 1}, {{.75, .25}, {.75, .25}, {.75, .25}, {.75, .25}});
  CHECK(constant.value("ece") == Approx(0).margin(1e-12));
  CHECK(constant.value("aurc") == Approx(0.25));
  CHECK(constant.value("auc_right") == Approx(0.5));
  auto unknown = with_probabilities({0, unknown_label}, {{.75, .25}, {.75, .25}});
  CHECK(unknown.value("nll") == Approx((-std::log(0.75) - std::log(2.220446049250313e-16)) / 2));
  CHECK(unknown.value("brier") == Approx((0.0625 * 2 + 0.5625 + 0.0625) / 4));
}

TEST_CASE("less is better of errors, and of no other score") {
  for (const auto* metric : {"mse", "mae", "nll", "brier", "ece", "ece_mass", "aurc"}) CHECK(is_error(metric));
  for (const auto* metric : {"accuracy", "auc_right", "r2", "kendall"}) CHECK_FALSE(is_error(metric));
}
