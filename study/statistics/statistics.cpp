#include "study/statistics/statistics.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/config/config.h"
#include "core/error.h"
#include "core/report/clusters.h"
#include "core/text.h"

namespace cloze {

namespace {

using boost::math::complement;
using boost::math::students_t;

double two_sided_p(double t, double freedom) {
  return std::isinf(t) ? 0 : 2 * cdf(complement(students_t(freedom), std::abs(t)));
}

/// The t that two-sided intervals of this level reach.
double t_limit(double freedom, double level) { return quantile(complement(students_t(freedom), level / 2)); }

/// The probability that a normal draw is further from 0 than `limit`.
double beyond(double limit, double mean, double sd) {
  const boost::math::normal standard;
  return cdf(complement(standard, (limit - mean) / sd)) + cdf(standard, (-limit - mean) / sd);
}

/// The probability that the interval of a true difference is off 0.
double power_of(double difference, double sd, int64_t seeds, double level, const ExampleError& examples) {
  const auto freedom = static_cast<double>(seeds - 1);
  const double error = sd / std::sqrt(static_cast<double>(seeds)), limit = t_limit(freedom, level);
  if (examples.is_none()) {
    const double shift = difference / error;
    // The sample's sd is six times the true one in 2 of 10^9 studies of two seeds, and never in larger ones.
    if (shift > std::max(30.0, 6 * limit)) return 1;
    const boost::math::non_central_t of_true(freedom, shift);
    return cdf(complement(of_true, limit)) + cdf(of_true, -limit);
  }
  const double of_examples = examples.reach(level);
  const double total = std::hypot(error, examples.error);
  if (total == 0) return difference > of_examples ? 1 : 0;
  if (error == 0) return beyond(of_examples, difference, total);
  // Over the sample's sd, which is chi-distributed.
  const auto at = [&](double chi) {
    const double log_density =
        (1 - freedom / 2) * std::log(2) - std::lgamma(freedom / 2) + (freedom - 1) * std::log(chi) - chi * chi / 2;
    return std::exp(log_density) *
           beyond(std::hypot(limit * error * chi / std::sqrt(freedom), of_examples), difference, total);
  };
  const double middle = std::sqrt(freedom);
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(at, std::max(0.0, middle - 10), middle + 10, 8,
                                                                       1e-11);
}

/// `x` to the decimals that show two digits of `scale`.
std::string rounded(double x, double scale) {
  const int decimals = scale > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(scale))), 0, 9) : 4;
  return fixed(x, decimals);
}

/// `18 to 110`
std::string range_words(const SeedRange& range) {
  if (!range.high) return concat(*range.low, " or more");
  return *range.low == *range.high ? std::to_string(*range.low) : concat(*range.low, " to ", *range.high);
}

/// p of two one-sided t tests that a mean lies within +-margin. Source: Schuirmann 1987.
double equivalence_p(double mean, const DifferenceError& error, double margin) {
  const double room = margin - std::abs(mean), p = error.p(room) / 2;
  if (room == 0) return error.reach(0.5) > 0 ? 0.5 : 1;
  return room > 0 ? p : 1 - p;
}

}  // namespace

Summary summarize(const std::vector<double>& values) {
  Summary summary{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return {.mean = std::numeric_limits<double>::quiet_NaN()};
  const auto n = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  if (values.size() > 1) summary.sd = std::sqrt(squares / (n - 1));
  return summary;
}

std::string to_text(const Summary& summary, int decimals) {
  if (summary.count == 0) return "";
  const auto mean = fixed(summary.mean, decimals);
  return summary.count > 1 ? mean + " ± " + fixed(summary.sd, decimals) : mean;
}

std::string to_text(const std::optional<Interval>& interval, int decimals) {
  if (!interval) return "";
  return "[" + fixed(interval->low, decimals, true) + ", " + fixed(interval->high, decimals, true) + "]";
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

DifferenceError error_of(const Difference& difference) {
  const auto n = static_cast<double>(difference.seeds);
  return {.of_seeds = difference.sd / std::sqrt(n), .seeds_freedom = n - 1, .of_examples = difference.examples};
}

double ExampleError::reach(double level) const {
  constexpr double points = 100;
  const double sampled = error > 0 ? t_limit(freedom, level) * error : 0;
  const double unseen = items > 0 ? points * unseen_share(items, level / 2) : 0;
  return std::hypot(sampled, unseen);
}

double DifferenceError::reach(double level) const {
  const double seeds = of_seeds > 0 ? t_limit(seeds_freedom, level) * of_seeds : 0;
  return std::hypot(seeds, of_examples.reach(level));
}

double DifferenceError::p(double difference) const {
  const double distance = std::abs(difference);
  if (distance == 0) return 1;
  if (of_seeds == 0 && of_examples.is_none()) return 0;
  if (of_examples.is_none()) return two_sided_p(distance / of_seeds, seeds_freedom);
  double low = -690, high = 0;  // logarithms of the level
  if (reach(std::exp(low)) < distance) return 0;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (reach(std::exp(middle)) < distance ? high : low) = middle;
  }
  return std::exp(high);
}

std::optional<Interval> mean_interval(const Summary& values, double confidence) {
  if (values.count < 2) return std::nullopt;
  const auto n = static_cast<double>(values.count);
  const double half = t_limit(n - 1, 1 - confidence) * values.sd / std::sqrt(n);
  return Interval{values.mean - half, values.mean + half};
}

Interval sd_interval(double sd, int64_t count, double confidence) {
  require<DataError>(count >= 2, "a standard deviation of ", count, " value has no interval; run more seeds");
  const boost::math::chi_squared of_squares(static_cast<double>(count - 1));
  const auto bound = [&](double q) { return sd * std::sqrt(static_cast<double>(count - 1) / quantile(of_squares, q)); };
  return {bound(0.5 + confidence / 2), bound(0.5 - confidence / 2)};
}

double detectable_difference(double sd, int64_t seeds, double level, double power, const ExampleError& examples) {
  if (sd == 0 && examples.is_none()) return 0;
  double low = 0, high = std::hypot(sd, examples.reach(level));
  while (power_of(high, sd, seeds, level, examples) < power) high *= 2;
  for (int step = 0; step < 100 && high - low > 1e-12 * high; ++step) {
    const double middle = (low + high) / 2;
    (power_of(middle, sd, seeds, level, examples) < power ? low : high) = middle;
  }
  return high;
}

std::optional<int64_t> seeds_for(double sd, double difference, double level, double power,
                                 const ExampleError& examples) {
  constexpr int64_t largest = 100'000;
  if (sd == 0 && examples.is_none()) return 2;
  const auto finds = [&](int64_t seeds) { return power_of(difference, sd, seeds, level, examples) >= power; };
  if (!finds(largest)) return std::nullopt;
  int64_t low = 1, high = 2;  // fewest is in (low, high]
  while (!finds(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (finds(middle) ? high : low) = middle;
  }
  return high;
}

Interval deciding_interval(const Difference& difference, const ComparisonRules& rules) {
  const double reach = error_of(difference).reach(rules.level());
  return {difference.mean - reach, difference.mean + reach};
}

Difference paired_t_test(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules) {
  require<DataError>(arm.size() == baseline.size(), "an arm of ", arm.size(), " runs has no pairs among ",
                     baseline.size(), " of the baseline; compare the seeds that both have");
  std::vector<double> differences(arm.size());
  std::transform(arm.begin(), arm.end(), baseline.begin(), differences.begin(), std::minus<>());
  const auto summary = summarize(differences);
  Difference difference{.mean = summary.mean, .sd = summary.sd, .seeds = summary.count};
  if (difference.seeds < 2) {
    difference.verdict = Verdict::single_seed;
    return difference;
  }
  const auto error = error_of(difference);
  const double reach = error.reach(1 - rules.confidence);
  difference.t_interval = Interval{difference.mean - reach, difference.mean + reach};
  difference.p = error.p(difference.mean);
  return difference;
}

Difference compare_seeds(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules, const ExampleError& examples) {
  auto difference = paired_t_test(arm, baseline, rules);
  if (difference.seeds < 2) return difference;
  difference.examples = examples;
  const auto error = error_of(difference);
  difference.interval = deciding_interval(difference, rules);
  difference.p = error.p(difference.mean);
  difference.p_corrected = std::min(1.0, static_cast<double>(rules.arms) * *difference.p);
  difference.verdict = verdict_of(*difference.interval, rules);
  const auto sds = sd_interval(difference.sd, difference.seeds, 0.8);
  if (difference.sd > 0) {
    // Hedges' correction of small samples, exact.
    const double freedom = error.seeds_freedom;
    const double correction =
        freedom > 1 ? std::exp(std::lgamma(freedom / 2) - std::lgamma((freedom - 1) / 2)) / std::sqrt(freedom / 2) : 0;
    if (correction > 0) difference.effect_size = correction * difference.mean / difference.sd;
    const auto detected = [&](double sd) {
      return detectable_difference(sd, difference.seeds, rules.level(), rules.power, examples);
    };
    difference.detectable = detected(difference.sd);
    difference.detectable_range = Interval{detected(sds.low), detected(sds.high)};
  }
  if (rules.margin > 0) {
    difference.p_equivalence = equivalence_p(difference.mean, error, rules.margin);
    const auto needed = [&](double sd) { return seeds_for(sd, rules.margin, rules.level(), rules.power, examples); };
    difference.seeds_needed = needed(difference.sd);
    difference.seeds_range = {needed(sds.low), needed(sds.high)};
  }
  return difference;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto left = static_cast<size_t>(at);
  const auto right = std::min(left + 1, sorted.size() - 1);
  return sorted[left] + (at - static_cast<double>(left)) * (sorted[right] - sorted[left]);
}

Verdict verdict_of(const Interval& interval, const ComparisonRules& rules) {
  const bool apart = !interval.holds(0);
  const bool is_within = -rules.margin < interval.low && interval.high < rules.margin;
  if (is_within) return apart ? Verdict::smaller : Verdict::tied;
  if (!apart) return Verdict::undecided;
  return (interval.high < 0) != rules.higher_is_better ? Verdict::better : Verdict::worse;
}

void correct(const std::vector<Difference*>& differences) {
  std::vector<double> p;
  for (const auto* difference : differences)
    if (difference->p) p.push_back(*difference->p);
  const auto corrected = holm(p);
  size_t next = 0;
  for (auto* difference : differences)
    if (difference->p) difference->p_holm = corrected[next++];
}

std::string with_unit(double number, const std::string& unit) {
  const bool is_one = number == 1 && unit.ends_with('s');
  return shortest(number) + (unit.empty() ? "" : " " + unit.substr(0, unit.size() - is_one));
}

std::string verdict_words(const Difference& difference, const ComparisonRules& rules, const std::string& unit) {
  const auto measured = [&](const std::string& number) { return unit.empty() ? number : number + " " + unit; };
  const auto interval = [&] {
    const auto& [low, high] = *difference.interval;
    const double near = std::min(std::abs(low), std::abs(high)), far = std::max(std::abs(low), std::abs(high));
    const double scale = std::max(high - low, far / 10);
    return measured(rounded(near, scale) + " to " + rounded(far, scale));
  };
  const auto margin = shortest(rules.margin);
  const bool lower = difference.mean < 0;
  const std::string direction = lower != rules.higher_is_better ? "better" : "worse";
  const auto at_once = rules.arms > 1 ? concat("simultaneous over ", rules.arms, " comparisons") : "";
  switch (difference.verdict) {
    case Verdict::better:
    case Verdict::worse:
      return direction + " by " + interval() + (at_once.empty() ? "" : " (" + at_once + ")");
    case Verdict::smaller:
      return concat("tied within ", with_unit(rules.margin, unit), " (", direction, " by ", interval(),
                    at_once.empty() ? "" : ", " + at_once, ")");
    case Verdict::tied:
      return "tied within " + with_unit(rules.margin, unit);
    case Verdict::single_seed:
      return "one seed: no interval";
    case Verdict::undecided:
    case Verdict::held_back:
      break;
  }
  auto text = concat("inconclusive: ", difference.seeds, " seeds");
  if (const auto& range = difference.detectable_range)
    text += " detect " + measured(rounded(range->low, range->low) + " to " + rounded(range->high, range->low));
  if (rules.margin > 0)
    text += difference.seeds_range.low ? concat(", for ", margin, " you need ", range_words(difference.seeds_range))
                                       : concat(", ", margin, " is out of reach");
  return text;
}

namespace {

void require_same(bool is_same, const char* what, int64_t number, int64_t other, const char* remedy) {
  require<DataError>(is_same, "runs have ", what, " of ", number, " and of ", other, " examples; ", remedy);
}

/// By what a run's value would change without each cluster of its examples: [G].
std::vector<double> changes_of(const ExampleLosses& run, const Clusters& clusters) {
  const auto examples = std::ssize(clusters.of);
  require_same(std::ssize(run.sum) == examples && std::ssize(run.count) == examples && examples > 0, "losses",
               std::ssize(run.sum), examples, "score them on the same held-out text");
  return without_each(clusters.sums(run.sum), clusters.sums(run.count));
}

/// The variance over draws of the means over seeds, without what seeds and draws share.
double variance_on_draws(const std::vector<const ExampleLosses*>& arm,
                         const std::vector<const ExampleLosses*>& baseline) {
  const auto seeds = baseline.size(), draws = baseline.front()->draws.size();
  const auto examples = baseline.front()->drawn_of;
  for (const auto* runs : {&arm, &baseline})
    for (const auto* run : *runs)
      require_same(run->draws.size() == draws && run->drawn_of == examples, "values on draws", run->drawn_of, examples,
                   "judge them on the same test part");
  std::vector<std::vector<double>> differences(seeds);  // [S][draws]
  std::vector<double> means;
  for (size_t d = 0; d < draws; ++d) {
    double mean = 0;
    for (size_t s = 0; s < seeds; ++s) mean += (arm[s]->draws[d] - baseline[s]->draws[d]) / static_cast<double>(seeds);
    if (!std::isfinite(mean)) continue;  // of one run the value is undefined
    means.push_back(mean);
    for (size_t s = 0; s < seeds; ++s) differences[s].push_back(arm[s]->draws[d] - baseline[s]->draws[d] - mean);
  }
  const auto variance = [](const std::vector<double>& values) { return std::pow(summarize(values).sd, 2); };
  const auto n = static_cast<double>(seeds);
  double of_interaction = 0;
  for (const auto& of_seed : differences) of_interaction += variance(of_seed) / (n * (n - 1));
  return variance(means) - of_interaction;
}

/// The jackknife variance over clusters of the means over seeds, without what seeds and clusters share.
double variance_over(const Clusters& clusters, const std::vector<const ExampleLosses*>& arm,
                     const std::vector<const ExampleLosses*>& baseline) {
  std::vector<double> sum(clusters.count), squares(clusters.count);  // over seeds
  for (size_t s = 0; s < baseline.size(); ++s) {
    const auto changes = changes_of(*arm[s], clusters), others = changes_of(*baseline[s], clusters);
    for (size_t g = 0; g < clusters.count; ++g) {
      sum[g] += changes[g] - others[g];
      squares[g] += std::pow(changes[g] - others[g], 2);
    }
  }
  const auto n = static_cast<double>(baseline.size()), m = static_cast<double>(clusters.count);
  double of_means = 0, of_interaction = 0;
  for (size_t g = 0; g < clusters.count; ++g) {
    of_means += sum[g] * sum[g] / (n * n);
    of_interaction += (squares[g] - sum[g] * sum[g] / n) / (n * (n - 1));
  }
  return (m - 1) / m * (of_means - of_interaction);
}

}  // namespace

ExampleError example_error(const std::vector<const ExampleLosses*>& arm,
                           const std::vector<const ExampleLosses*>& baseline) {
  const auto& first = *baseline.front();
  const bool has_draws = !first.draws.empty();
  const auto has_none = [](const ExampleLosses* run) { return run->sum.empty() && run->draws.empty(); };
  if (std::ranges::all_of(arm, has_none) && std::ranges::all_of(baseline, has_none)) return {};
  const auto examples = has_draws ? static_cast<size_t>(first.drawn_of) : first.sum.size();
  const auto clusters = cluster_examples(first.documents, examples);
  const auto counts = clusters.sums(has_draws ? std::vector<double>(examples, 1) : first.count);
  ExampleError error{.freedom = freedom_of(counts),
                     .count = static_cast<int64_t>(examples),
                     .clusters = static_cast<int64_t>(clusters.count),
                     .items = first.items};
  const auto m = static_cast<double>(clusters.count);
  if (m < 2) return error;
  // A bootstrap of m clusters has (m - 1) / m of their variance.
  const double variance =
      has_draws ? m / (m - 1) * variance_on_draws(arm, baseline) : variance_over(clusters, arm, baseline);
  error.error = std::sqrt(std::max(0.0, variance));
  return error;
}

}  // namespace cloze
