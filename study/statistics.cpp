#include "study/statistics.h"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "core/config.h"
#include "core/error.h"
#include "core/text.h"

namespace cloze {

namespace {

using boost::math::complement;
using boost::math::students_t;

double two_sided_p(double t, double freedom) {
  return std::isinf(t) ? 0 : 2 * cdf(complement(students_t(freedom), std::abs(t)));
}

/// Power of a paired two-sided t test at a true difference.
double power_of(double difference, double sd, int64_t seeds, double confidence) {
  const auto freedom = static_cast<double>(seeds - 1);
  const double limit = quantile(students_t(freedom), 0.5 + confidence / 2);
  const double shift = difference / sd * std::sqrt(static_cast<double>(seeds));
  // The sample's sd is six times the true one in 2 of 10^9 studies of two seeds, and never in larger ones.
  if (shift > std::max(30.0, 6 * limit)) return 1;
  const boost::math::non_central_t of_true(freedom, shift);
  return cdf(complement(of_true, limit)) + cdf(of_true, -limit);
}

/// `x` to the decimals that show two digits of `scale`.
std::string rounded(double x, double scale) {
  const int decimals = scale > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(scale))), 0, 9) : 4;
  return fixed(x, decimals);
}

}  // namespace

Summary summarize(const std::vector<double>& values) {
  Summary found{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return {.mean = std::numeric_limits<double>::quiet_NaN()};
  const auto n = static_cast<double>(values.size());
  found.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  if (values.size() > 1) found.sd = std::sqrt(squares / (n - 1));
  return found;
}

std::optional<Outlier> outlier(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 4) return std::nullopt;
  Outlier furthest;
  for (size_t i = 0; i < values.size(); ++i) {
    auto rest = values;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const auto others = summarize(rest);
    const double distance = std::abs(values[i] - others.mean);
    if (distance == 0) continue;
    // The prediction of one more value from n - 1 others; Bonferroni for the choice among n.
    const double t = distance / (others.sd * std::sqrt(n / (n - 1)));
    const double p = std::min(1.0, n * two_sided_p(t, n - 2));
    if (p < furthest.p) furthest = {.index = i, .p = p, .others = others};
  }
  if (furthest.p >= 0.01) return std::nullopt;
  return furthest;
}

double ExampleLosses::value() const {
  return std::accumulate(sum.begin(), sum.end(), 0.0) / std::accumulate(count.begin(), count.end(), 0.0);
}

double equivalence_p(double mean, double standard_error, int64_t seeds, double margin) {
  if (standard_error == 0) return std::abs(mean) < margin ? 0 : 1;
  const students_t student(static_cast<double>(seeds - 1));
  const double above = cdf(complement(student, (mean + margin) / standard_error)),
               below = cdf(student, (mean - margin) / standard_error);
  return std::max(above, below);
}

double detectable_difference(double sd, int64_t seeds, double confidence, double power) {
  if (sd == 0) return 0;
  double low = 0, high = sd;
  while (power_of(high, sd, seeds, confidence) < power) high *= 2;
  for (int step = 0; step < 100 && high - low > 1e-12 * high; ++step) {
    const double middle = (low + high) / 2;
    (power_of(middle, sd, seeds, confidence) < power ? low : high) = middle;
  }
  return high;
}

std::optional<int64_t> seeds_for(double sd, double difference, double confidence, double power) {
  constexpr int64_t largest = 100'000;
  if (sd == 0) return 2;
  if (power_of(difference, sd, largest, confidence) < power) return std::nullopt;
  int64_t low = 1, high = 2;  // fewest is in (low, high]
  while (power_of(difference, sd, high, confidence) < power) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (power_of(difference, sd, middle, confidence) < power ? low : high) = middle;
  }
  return high;
}

Difference paired_t_test(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules) {
  require<DataError>(arm.size() == baseline.size(), "an arm of ", arm.size(), " runs has no pairs among ",
                     baseline.size(), " of the baseline; compare the seeds that both have");
  std::vector<double> differences(arm.size());
  std::transform(arm.begin(), arm.end(), baseline.begin(), differences.begin(), std::minus<>());
  const auto summary = summarize(differences);
  Difference found{.mean = summary.mean, .sd = summary.sd, .seeds = summary.count};
  if (found.seeds < 2) {
    found.verdict = Verdict::single_seed;
    return found;
  }
  const auto n = static_cast<double>(found.seeds);
  const double error = found.sd / std::sqrt(n), freedom = n - 1;
  const double reach = quantile(students_t(freedom), 0.5 + rules.confidence / 2) * error;
  found.t_interval = Interval{found.mean - reach, found.mean + reach};
  found.p = error > 0 ? two_sided_p(found.mean / error, freedom) : (found.mean == 0 ? 1 : 0);
  return found;
}

Difference compare_seeds(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules) {
  auto found = paired_t_test(arm, baseline, rules);
  if (found.seeds < 2) return found;
  const auto n = static_cast<double>(found.seeds);
  const double error = found.sd / std::sqrt(n), freedom = n - 1;
  if (found.sd > 0) {
    // Hedges' correction of small samples, exact.
    const double correction =
        freedom > 1 ? std::exp(std::lgamma(freedom / 2) - std::lgamma((freedom - 1) / 2)) / std::sqrt(freedom / 2) : 0;
    if (correction > 0) found.effect_size = correction * found.mean / found.sd;
    found.detectable = detectable_difference(found.sd, found.seeds, rules.confidence, rules.power);
  }
  if (rules.margin > 0) {
    found.p_equivalence = equivalence_p(found.mean, error, found.seeds, rules.margin);
    found.seeds_needed = seeds_for(found.sd, rules.margin, rules.confidence, rules.power);
  }
  return found;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto left = static_cast<size_t>(at);
  const auto right = std::min(left + 1, sorted.size() - 1);
  return sorted[left] + (at - static_cast<double>(left)) * (sorted[right] - sorted[left]);
}

Interval expanded_percentiles(std::vector<double> draws, int64_t seeds, double confidence) {
  const auto n = static_cast<double>(seeds);
  const double reach = quantile(students_t(n - 1), 0.5 + confidence / 2) * std::sqrt(n / (n - 1));
  const double tail = cdf(boost::math::normal(), -reach);
  std::sort(draws.begin(), draws.end());
  return {quantile(draws, tail), quantile(draws, 1 - tail)};
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, std::min(1.0, p[order[rank]] * static_cast<double>(p.size() - rank)));
    corrected[order[rank]] = largest;
  }
  return corrected;
}

void judge(std::vector<Difference>& differences, const ComparisonRules& rules) {
  std::vector<double> p;
  for (const auto& difference : differences)
    if (difference.p) p.push_back(*difference.p);
  const auto corrected = holm(p);
  const double level = 1 - rules.confidence;
  size_t next = 0;
  for (auto& difference : differences) {
    if (!difference.p) continue;
    difference.p_holm = corrected[next++];
    const bool apart =
        *difference.p_holm < level && !(difference.bootstrap_interval && difference.bootstrap_interval->holds(0));
    const bool tied = difference.p_equivalence && *difference.p_equivalence < level;
    if (apart && tied)
      difference.verdict = Verdict::smaller;
    else if (apart)
      difference.verdict = (difference.mean < 0) != rules.higher_is_better ? Verdict::better : Verdict::worse;
    else
      difference.verdict = tied ? Verdict::tied : Verdict::undecided;
  }
}

std::string verdict_words(const Difference& difference, const ComparisonRules& rules, const std::string& unit) {
  const auto with_unit = [&](const std::string& number) { return unit.empty() ? number : number + " " + unit; };
  const auto interval = [&] {
    const auto& t = *difference.t_interval;
    const double width = t.high - t.low, near = std::min(std::abs(t.low), std::abs(t.high)),
                 far = std::max(std::abs(t.low), std::abs(t.high));
    const double scale = std::max(width, far / 10);
    return with_unit(rounded(near, scale) + " to " + rounded(far, scale));
  };
  const auto margin = shortest(rules.margin);
  const bool lower = difference.mean < 0;
  const std::string direction = lower != rules.higher_is_better ? "better" : "worse";
  switch (difference.verdict) {
    case Verdict::better:
    case Verdict::worse:
      return direction + " by " + interval();
    case Verdict::smaller:
      return words("tied within ", with_unit(margin), " (", direction, " by ", interval(), ")");
    case Verdict::tied:
      return "tied within " + with_unit(margin);
    case Verdict::single_seed:
      return "one seed: no interval";
    case Verdict::undecided:
      break;
  }
  auto text = words("cannot be told: ", difference.seeds, " seeds");
  if (difference.detectable) text += " detect " + with_unit(rounded(*difference.detectable, *difference.detectable));
  if (rules.margin > 0)
    text += difference.seeds_needed ? words(", for ", margin, " you need ", *difference.seeds_needed)
                                    : words(", ", margin, " is out of reach");
  return text;
}

UniformTest uniform_test(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  UniformTest found;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto rank = static_cast<double>(i);
    found.statistic = std::max({found.statistic, values[i] - rank / n, (rank + 1) / n - values[i]});
  }
  const double x = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * found.statistic;
  double p = 0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  found.p = std::clamp(x < 0.2 ? 1.0 : p, 0.0, 1.0);
  return found;
}

}  // namespace cloze
