#include "evaluation/suites/acquisition_ages.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "evaluation/suites/least_squares.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

namespace {

constexpr int first_month = 16, last_month = 30;
constexpr int max_evaluations = 1000;

/// a / (1 + exp(-b (x - c))) + d.
struct Sigmoid {
  double a, b, c, d;
  explicit Sigmoid(std::span<const double> p) : a(p[0]), b(p[1]), c(p[2]), d(p[3]) {}
  double operator()(double x) const { return a / (1 + std::exp(-b * (x - c))) + d; }
  /// Where a rising sigmoid passes y; none: it falls, or lies above or below.
  std::optional<double> passes(double y) const {
    if (b <= 0 || a <= 0 || y <= d || y >= a + d) return {};
    return c - std::log(a / (y - d) - 1) / b;
  }
};

Residuals residuals_of(std::span<const double> x, std::span<const double> y) {
  return [x, y](std::span<const double> parameters, std::span<double> residuals) {
    const Sigmoid sigmoid(parameters);
    for (size_t i = 0; i < x.size(); ++i) residuals[i] = sigmoid(x[i]) - y[i];
  };
}

/// The pairs whose second value is there.
std::pair<std::vector<double>, std::vector<double>> present(std::span<const double> x, std::span<const double> y) {
  std::pair<std::vector<double>, std::vector<double>> found;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(y[i])) continue;
    found.first.push_back(x[i]);
    found.second.push_back(y[i]);
  }
  return found;
}

/// The columns of months that a table has.
std::vector<int> months_of(const CsvTable& table) {
  std::vector<int> found;
  for (int month = first_month; month <= last_month; ++month)
    if (table.find(std::to_string(month))) found.push_back(month);
  return found;
}

ChildAges ages_by_fractions(const CsvTable& table) {
  std::vector<double> months;
  std::vector<std::vector<double>> columns;
  for (const auto month : months_of(table)) {
    months.push_back(month);
    columns.push_back(table.numbers(std::to_string(month)));
  }
  ChildAges ages;
  std::map<std::string, bool> seen;
  const auto words = table.text("word");
  for (size_t row = 0; row < words.size(); ++row) {
    if (!seen.emplace(words[row], true).second) continue;
    std::vector<double> fractions;
    for (const auto& column : columns) fractions.push_back(column[row]);
    if (const auto age = child_age(months, fractions)) ages[words[row]] = *age;
  }
  return ages;
}

}  // namespace

const double babylm_chance = std::log2(300'000.0);

bool is_age_table(const CsvTable& table) {
  return (table.find("word") && !months_of(table).empty()) || (table.find("word_clean") && table.find("aoa"));
}

ChildAges child_ages(const CsvTable& table) {
  require<DataError>(is_age_table(table), table.file,
                     ": has no ages; its columns are `word` and 16 to 30, or `word_clean` and `aoa`");
  if (!table.find("aoa")) return ages_by_fractions(table);
  ChildAges ages;
  const auto words = table.text("word_clean");
  const auto months = table.numbers("aoa");
  for (size_t row = 0; row < words.size(); ++row)
    if (!std::isnan(months[row])) ages.emplace(words[row], months[row]);
  return ages;
}

std::optional<double> child_age(std::span<const double> months, std::span<const double> fractions) {
  const auto [x, y] = present(months, fractions);
  if (x.size() < 3) return {};
  const auto fit = bounded_least_squares(residuals_of(x, y), x.size(), {1, 0.1, average(x), 0}, {0, 0, x.front(), -0.5},
                                         {2, 1, x.back(), 0.5}, max_evaluations);
  if (!fit) return {};
  const auto age = Sigmoid(*fit).passes(0.5);
  return age && *age >= x.front() && *age <= x.back() ? age : std::nullopt;
}

std::optional<double> model_age(const LearningCurve& curve, double chance) {
  if (curve.words.size() < 3) return {};
  const auto [words, surprisals] = present(curve.words, curve.surprisals);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (words.empty() || !std::all_of(surprisals.begin(), surprisals.end(), finite)) return {};
  std::vector<double> x, y;  // a rising curve over the logarithm of the words
  for (const auto count : words) x.push_back(std::log10(count + 1));
  for (const auto surprisal : surprisals) y.push_back(-surprisal);
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  const auto fit =
      levenberg_marquardt(residuals_of(x, y), x.size(), {*high - *low, 1, average(x), *low}, max_evaluations);
  if (!fit) return {};
  const double halfway = -(chance - 0.5 * (chance + *high));
  const auto age = Sigmoid(*fit).passes(halfway);
  if (!age) return {};
  const double at = std::pow(10, *age) - 1;
  return at >= words.front() && at <= words.back() ? age : std::nullopt;
}

double AcquisitionAges::correlation() const {
  if (words.size() < 3) return 0;
  const double mean_model = average(model), mean_child = average(child);
  double mm = 0, mc = 0, cc = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const double m = model[i] - mean_model, c = child[i] - mean_child;
    mm += m * m;
    mc += m * c;
    cc += c * c;
  }
  return mc / std::sqrt(mm) / std::sqrt(cc);
}

AcquisitionAges acquisition_ages(const std::vector<std::pair<std::string, LearningCurve>>& curves,
                                 const ChildAges& children, double chance) {
  AcquisitionAges ages;
  for (const auto& [word, curve] : curves) {
    const auto child = children.find(word);
    if (child == children.end()) continue;
    const auto model = model_age(curve, chance);
    if (!model) continue;
    ages.words.push_back(word);
    ages.model.push_back(*model);
    ages.child.push_back(child->second);
  }
  return ages;
}

}  // namespace cloze
