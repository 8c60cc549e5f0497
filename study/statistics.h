#pragma once
// Comparisons of runs: paired differences over seeds, a two-level bootstrap over seeds and examples, verdicts.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cloze {

/// A closed interval.
struct Interval {
  double low = 0, high = 0;
  bool holds(double x) const { return low <= x && x <= high; }
};

/// Mean and spread of the values of several seeds.
struct Summary {
  double mean = 0;
  double sd = 0;  ///< of a sample, n - 1 in the denominator; 0 for one value
  int64_t count = 0;
};
Summary summarize(const std::vector<double>& values);

/// The value that is furthest from all others, where chance does not explain it.
struct Outlier {
  size_t index = 0;
  double p = 1;      ///< two-sided, corrected for the choice of the furthest
  Summary others{};  ///< the other values
};
/// Grubbs 1969 at 1 %; nullopt for fewer than four values.
std::optional<Outlier> outlier(const std::vector<double>& values);

/// Sums of single losses of one run, example by example, in the order of the held-out text.
struct ExampleLosses {
  std::vector<double> sum;    ///< [E], nats
  std::vector<double> count;  ///< [E], what the sum is divided by: predictions, or bytes times ln 2
  /// Sum by count, over all examples; NaN where nothing was counted.
  double value() const;
};

/// What a difference is judged by.
struct ComparisonRules {
  double margin = 0;              ///< differences below it do not matter; 0: none is stated
  bool higher_is_better = false;  ///< of accuracies; losses are better when lower
  double confidence = 0.95;
  double power = 0.8;  ///< at which detectable differences are stated
  int64_t resamples = 2000;
  uint64_t seed = 1;  ///< of the resampling
};

/// Verdicts on a difference. `smaller`: it is there, and below the margin.
enum class Verdict { better, worse, smaller, tied, undecided, single_seed };

/// An arm against the baseline, runs paired by seed.
struct Difference {
  double mean = 0;  ///< of arm minus baseline
  double sd = 0;    ///< over seeds
  int64_t seeds = 0;
  std::optional<Interval> t_interval{};          ///< Student's, over seeds; none for one seed
  std::optional<Interval> bootstrap_interval{};  ///< over seeds and examples; none for one seed, or without examples
  std::optional<double> p{};                     ///< two-sided paired t test
  std::optional<double> p_holm{};                ///< corrected for the number of arms
  std::optional<double> p_equivalence{};         ///< two one-sided t tests against the margin
  std::optional<double> effect_size{};           ///< Hedges' g of paired differences
  std::optional<double> detectable{};            ///< difference that so many seeds find with the stated power
  std::optional<int64_t> seeds_needed{};         ///< seeds that find the margin with the stated power
  Verdict verdict = Verdict::undecided;
};

/// Mean, sd, t_interval and p of differences, one for each seed: what is quick to compute of compare_seeds.
Difference paired_t_test(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules);

/// Paired t test of differences, one for each seed. Source: Student 1908; as scipy.stats.ttest_rel.
/// Fills mean, sd, t_interval, p, p_equivalence, effect_size, detectable and seeds_needed.
Difference compare_seeds(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules);

/// Means of arms minus baseline when seeds and examples are drawn anew with replacement, all arms alike.
///
/// arms      [A][S], runs of the seeds of the baseline over the same E examples
/// baseline  [S]
/// returns   [A][resamples], in the order of drawing: resample b draws S seeds, then E examples, by below() of
///           Rng(seed).stream("bootstrap", 0, b)
/// Throws DataError for runs of other numbers of examples, and arms of other numbers of runs.
/// Source: Sellam et al. 2022, section 4 (arXiv 2106.16163), procedure 1.
std::vector<std::vector<double>> multibootstrap(const std::vector<std::vector<const ExampleLosses*>>& arms,
                                                const std::vector<const ExampleLosses*>& baseline,
                                                const ComparisonRules& rules);

/// The interval of a bootstrap distribution over few seeds: percentiles whose levels are widened as Student's t is
/// wider than the normal distribution, and the plain bootstrap is narrower than its sample by sqrt((n - 1) / n).
/// Source: Hesterberg 2015, section 4.1.2 (arXiv 1411.5279), "expanded percentile interval".
Interval expanded_percentiles(std::vector<double> draws, int64_t seeds, double confidence);

/// The q-quantile of sorted values, linear between neighbours, as numpy.quantile.
double quantile(const std::vector<double>& sorted, double q);

/// Holm's correction of several p values, in their order. Source: Holm 1979.
std::vector<double> holm(const std::vector<double>& p);

/// p of two one-sided t tests that a mean lies within +-margin. Source: Schuirmann 1987.
double equivalence_p(double mean, double standard_error, int64_t seeds, double margin);

/// The smallest true difference that a paired two-sided t test over `seeds` finds with probability `power`.
double detectable_difference(double sd, int64_t seeds, double confidence, double power);
/// The fewest seeds with which it finds `difference`; none up to 100,000.
std::optional<int64_t> seeds_for(double sd, double difference, double confidence, double power);

/// Verdicts of arms against one baseline, after Holm's correction over all of them.
/// A difference is called better or worse where the corrected p is below 1 - confidence and the bootstrap interval,
/// where there is one, does not hold 0; tied where p_equivalence is below 1 - confidence.
void judge(std::vector<Difference>& differences, const ComparisonRules& rules);

/// `better by 0.031 to 0.052 nats`, `tied within 0.01 nats`, `cannot be told: 5 seeds detect 0.04 nats, for 0.01 you
/// need 31`.
std::string verdict_words(const Difference& difference, const ComparisonRules& rules, const std::string& unit);

/// The Kolmogorov-Smirnov test of values against the uniform distribution on [0, 1].
struct UniformTest {
  double statistic = 0;  ///< the largest distance between the two distribution functions
  double p = 1;          ///< two-sided, by Kolmogorov's limit with Stephens' correction for n
};
UniformTest uniform_test(std::vector<double> values);

}  // namespace cloze
