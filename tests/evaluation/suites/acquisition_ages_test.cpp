// Learning curves and ages against SciPy's curve_fit.
#include "evaluation/suites/acquisition.h"

#include <cmath>

#include "core/error.h"
#include "evaluation/suites/least_squares.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// a / (1 + exp(-b (x - c))) + d - y.
Residuals sigmoid(const std::vector<double>& x, const std::vector<double>& y) {
  return [&x, &y](std::span<const double> p, std::span<double> residuals) {
    for (size_t i = 0; i < x.size(); ++i) residuals[i] = p[0] / (1 + std::exp(-p[1] * (x[i] - p[2]))) + p[3] - y[i];
  };
}

void check_age(const std::optional<double>& found, const nlohmann::json& wanted, double epsilon) {
  REQUIRE(found.has_value() != wanted.is_null());
  if (found) CHECK(*found == Approx(wanted.get<double>()).epsilon(epsilon));
}

}  // namespace

TEST_CASE("curves are fitted as SciPy fits them, and given up where it gives up", "[suites][acquisition]") {
  for (const auto& one : reference("regressions.json", "learning")) {
    INFO(one.dump());
    std::vector<double> x, y;
    for (const double words : one["words"]) x.push_back(std::log10(words + 1));
    for (const double surprisal : one["surprisals"]) y.push_back(-surprisal);
    const auto [low, high] = std::minmax_element(y.begin(), y.end());
    double middle = 0;
    for (const double value : x) middle += value / static_cast<double>(x.size());
    const auto fit = levenberg_marquardt(sigmoid(x, y), x.size(), {*high - *low, 1, middle, *low}, 1000);
    REQUIRE(fit.has_value() != one["parameters"].is_null());
    for (size_t p = 0; fit && p < 4; ++p) CHECK((*fit)[p] == Approx(one["parameters"][p].get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("a model knows a word where SciPy's curve lies halfway between chance and its minimum",
          "[suites][acquisition]") {
  for (const auto& one : reference("regressions.json", "learning")) {
    LearningCurve curve{.words = one["words"], .surprisals = one["surprisals"]};
    INFO(one.dump());
    for (const auto& at : one["ages"]) check_age(model_age(curve, at["chance"]), at["age"], 1e-6);
  }
}

TEST_CASE("children know a word where SciPy's bounded curve passes a half within the months", "[suites][acquisition]") {
  for (const auto& one : reference("regressions.json", "children")) {
    INFO(one.dump());
    check_age(child_age(numbers_of(one["months"]), numbers_of(one["shares"])), one["age"], 1e-4);
  }
}

TEST_CASE("a minimum on a bound is found there", "[suites][acquisition]") {
  // (p - 3)^2 + (q + 1)^2 with p at most 2 and q at least 0
  const Residuals far = [](std::span<const double> p, std::span<double> r) {
    r[0] = p[0] - 3;
    r[1] = p[1] + 1;
  };
  const auto fit = bounded_least_squares(far, 2, {1, 1}, {0, 0}, {2, 5}, 1000);
  REQUIRE(fit);
  CHECK((*fit)[0] == 2);
  CHECK((*fit)[1] == 0);
  CHECK_FALSE(levenberg_marquardt(far, 1, {1, 1}, 1000));  // fewer residuals than parameters
}

TEST_CASE("a curve with gaps is that of its other values, and one without enough has no age", "[suites][acquisition]") {
  const auto one = reference("regressions.json", "learning")[0];
  LearningCurve curve{.words = one["words"], .surprisals = one["surprisals"]};
  const auto age = model_age(curve, 10);
  REQUIRE(age);
  curve.words.insert(curve.words.begin() + 3, 4e6);
  curve.surprisals.insert(curve.surprisals.begin() + 3, NAN);
  CHECK(model_age(curve, 10) == age);
  curve.surprisals[5] = INFINITY;
  CHECK_FALSE(model_age(curve, 10));
  CHECK_FALSE(model_age({.words = {1, 2}, .surprisals = {3, 1}}, 10));
  CHECK_FALSE(child_age(std::vector<double>{16, 17}, std::vector<double>{0.1, 0.9}));
}

TEST_CASE("ages of children are read from both kinds of tables, the first row of a word", "[suites][acquisition]") {
  const auto one = reference("regressions.json", "children")[0];
  std::string head = "word", shares = "owl", flat = "spoon";
  for (size_t m = 0; m < one["months"].size(); ++m) {
    head += "," + std::to_string(one["months"][m].get<int>());
    shares += "," + std::to_string(one["shares"][m].get<double>());
    flat += ",0.1";
  }
  const auto ages =
      child_ages(parse_csv(head + "\n" + shares + "\n" + flat + "\n" + flat.replace(0, 5, "owl") + "\n", "a.csv"));
  REQUIRE(ages.size() == 1);  // the spoon is not known within the months
  CHECK(ages.at("owl") == Approx(one["age"].get<double>()).epsilon(1e-4));
  const auto list = child_ages(parse_csv("word_clean,aoa\nowl,21.5\nspoon,NA\nowl,30\n", "b.csv"));
  CHECK((list == ChildAges{{"owl", 21.5}}));
  CHECK_THROWS_WITH(child_ages(parse_csv("word,age\nowl,21\n", "c.csv")),
                    Contains("c.csv: has no ages; its columns are `word` and 16 to 30, or `word_clean` and `aoa`"));
  CHECK_FALSE(is_age_table(parse_csv("word,age\nowl,21\n", "c.csv")));
}

TEST_CASE("ages of a model and of children are paired by word and correlated as by SciPy", "[suites][acquisition]") {
  const auto wanted = reference("regressions.json", "correlation");
  const AcquisitionAges ages{.words = std::vector<std::string>(9, "w"), .model = wanted["a"], .child = wanted["b"]};
  CHECK(ages.correlation() == Approx(wanted["pearson"].get<double>()).epsilon(1e-12));
  CHECK(AcquisitionAges{.words = {"a", "b"}, .model = {1, 2}, .child = {3, 4}}.correlation() == 0);
  const auto curves = reference("regressions.json", "learning");
  std::vector<std::pair<std::string, LearningCurve>> of_words;
  const std::vector<std::string> words{"owl", "spoon", "lamp", "falls", "late"};
  for (size_t i = 0; i < words.size(); ++i)
    of_words.emplace_back(words[i], LearningCurve{.words = curves[i]["words"], .surprisals = curves[i]["surprisals"]});
  const auto found =
      acquisition_ages(of_words, {{"lamp", 20}, {"owl", 25}, {"falls", 18}, {"cup", 16}}, std::log(30000));
  CHECK(found.words == std::vector<std::string>{"owl", "lamp"});  // the spoon has no child, what falls has no age
  CHECK(found.child == std::vector<double>{25, 20});
  CHECK(found.model[1] == Approx(curves[2]["ages"][0]["age"].get<double>()).epsilon(1e-6));
}
