#pragma once
// Comparisons of runs: paired differences over seeds and examples, the interval that decides, verdicts.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/significance.h"

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
/// `3.1033 ± 0.0078`; empty for no value, without a spread for one.
std::string to_text(const Summary& summary, int decimals);
/// `[-0.01, +0.02]`; empty without an interval.
std::string to_text(const std::optional<Interval>& interval, int decimals);

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
  std::vector<double> sum{};    ///< [E], nats
  std::vector<double> count{};  ///< [E], what the sum is divided by: predictions, or bytes times ln 2
  /// [E], the documents of the examples, or what else they share: examples of one are not independent. Empty: each
  /// example is one.
  std::vector<uint64_t> documents{};
  /// Of a share in points the items that are right or wrong; 0: the value is none.
  int64_t items = 0;
  /// Of a value that is no mean of examples, F1 say: its values on bootstrap draws of documents, which are the same for
  /// all runs; `sum` and `count` are empty then.
  std::vector<double> draws{};
  int64_t drawn_of = 0;  ///< examples of those draws
  /// Sum by count, over all examples; NaN where nothing was counted.
  double value() const;
};

/// What a difference is judged by.
struct ComparisonRules {
  double margin = 0;              ///< differences below it do not matter; 0: none is stated
  bool higher_is_better = false;  ///< of accuracies; losses are better when lower
  double confidence = 0.95;
  double power = 0.8;  ///< at which detectable differences are stated
  int64_t arms = 1;    ///< whose intervals hold all at once with this confidence
  /// Of each interval, 1 minus its own confidence: Bonferroni's.
  double level() const { return (1 - confidence) / static_cast<double>(arms); }
};

/// What the held-out examples add to the standard error of a difference, however many seeds are run.
struct ExampleError {
  double error = 0;
  double freedom = 1;    ///< degrees of freedom: of documents of one size their number less 1 (freedom_of)
  int64_t count = 0;     ///< examples
  int64_t clusters = 0;  ///< documents of the examples, or what else they share
  int64_t items = 0;     ///< as in ExampleLosses
  /// Half of the two-sided interval that misses with probability `level`: Student's, and, of a share, what so many
  /// items leave open even if none of them differs, 1 - (level / 2)^(1 / items), as the root of the sum of squares.
  /// Source: Clopper and Pearson 1934 for none of n.
  double reach(double level) const;
  bool is_none() const { return error == 0 && items == 0; }
};

/// Of the mean paired difference of runs: the jackknife variance over documents of its means over seeds, minus the part
/// of it that is the interaction of seeds and documents, which the variance over seeds has already. 0 where that is
/// negative.
///
/// arm, baseline  [S], S >= 2, runs of the same seeds over the same E examples; a run's value is a ratio of sums
/// Where values are no means of examples, both variances are those of values on the same draws of documents: a
/// bootstrap of two levels, runs and documents. Without examples the error is 0.
/// Throws DataError for runs of other numbers of examples. Source: the two-way random model with one observation a
/// cell (Searle, Casella and McCulloch 1992); core/report/clusters.h for the jackknife and the degrees of freedom.
ExampleError example_error(const std::vector<const ExampleLosses*>& arm,
                           const std::vector<const ExampleLosses*>& baseline);

/// The standard error of a mean paired difference: a part of the seeds, and one of the examples.
struct DifferenceError {
  double of_seeds = 0, seeds_freedom = 1;
  ExampleError of_examples{};
  /// Half of the width of the two-sided interval that misses with probability `level` at most: the root of the sum of
  /// the squared t intervals of both parts. Source: Banerjee 1960 (Sankhya 22, 357).
  double reach(double level) const;
  /// Two-sided: the level at which the interval around the difference ends at 0.
  double p(double difference) const;
};

/// Verdicts on a difference. `smaller`: it is there, and below the margin. `held_back`: one arm has lost more of its
/// runs than the other (study/report/compare.cpp), so that what is left does not stand for all.
enum class Verdict { better, worse, smaller, tied, undecided, held_back, single_seed };

/// Numbers of seeds; none: more than 100,000.
struct SeedRange {
  std::optional<int64_t> low{}, high{};
};

/// An arm against the baseline, runs paired by seed.
struct Difference {
  double mean = 0;  ///< of arm minus baseline
  double sd = 0;    ///< over seeds
  int64_t seeds = 0;
  ExampleError examples{};             ///< without losses of the same examples: of no examples
  std::optional<Interval> interval{};  ///< over seeds and examples, of all arms at once: it decides; none for one seed
  std::optional<Interval> t_interval{};   ///< of this arm alone, Student's over seeds
  std::optional<double> p{};              ///< two-sided, of this arm alone
  std::optional<double> p_corrected{};    ///< for the number of arms: below 1 - confidence where `interval` is off 0
  std::optional<double> p_holm{};         ///< the same by Holm's method, which has no intervals; it decides nothing
  std::optional<double> p_equivalence{};  ///< two one-sided tests of this arm alone against the margin
  std::optional<double> effect_size{};    ///< Hedges' g of paired differences
  std::optional<double> detectable{};     ///< difference that so many seeds find with the stated power
  std::optional<Interval> detectable_range{};  ///< that difference at the ends of the 80 % interval of sd
  std::optional<int64_t> seeds_needed{};  ///< seeds that find the margin with the stated power; none: no number does
  SeedRange seeds_range{};                ///< that number at the ends of the 80 % interval of sd
  Verdict verdict = Verdict::undecided;
};

/// The standard error of a difference whose sd, seeds and examples are known.
DifferenceError error_of(const Difference& difference);

/// The interval that decides, of a difference whose mean, sd, seeds and examples are known.
Interval deciding_interval(const Difference& difference, const ComparisonRules& rules);

/// Mean, sd, t_interval and p of differences, one for each seed: what is quick to compute of compare_seeds. Source:
/// Student 1908; as scipy.stats.ttest_rel.
Difference paired_t_test(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules);

/// Everything of a difference but p_holm: runs paired by seed, and the error of the examples that they share.
Difference compare_seeds(const std::vector<double>& arm, const std::vector<double>& baseline,
                         const ComparisonRules& rules, const ExampleError& examples = {});

/// The q-quantile of sorted values, linear between neighbours, as numpy.quantile.
double quantile(const std::vector<double>& sorted, double q);

/// Student's interval of the mean of independent values (Student 1908); none of fewer than two.
std::optional<Interval> mean_interval(const Summary& values, double confidence);

/// Interval of the standard deviation of normal draws: (n - 1) s^2 / sigma^2 is chi-square with n - 1 degrees of
/// freedom. Throws DataError for fewer than two draws.
Interval sd_interval(double sd, int64_t count, double confidence);

/// The smallest true difference that `seeds` find with probability `power`: its interval is off 0. `sd` and `examples`
/// are taken for the true ones.
double detectable_difference(double sd, int64_t seeds, double level, double power, const ExampleError& examples = {});
/// The fewest seeds with which `difference` is found; none up to 100,000.
std::optional<int64_t> seeds_for(double sd, double difference, double level, double power,
                                 const ExampleError& examples = {});

/// The verdict that an interval gives: better or worse where it is off 0, tied where it is within the margin, smaller
/// where it is both.
Verdict verdict_of(const Interval& interval, const ComparisonRules& rules);

/// Fills in p_holm of all of these differences that have a p. Source: Holm 1979.
void correct(const std::vector<Difference*>& differences);

/// A number and its unit: `1 point`, `0.5 points`.
std::string with_unit(double number, const std::string& unit);

/// `better by 0.031 to 0.052 nats (simultaneous over 3 comparisons)`, `tied within 0.01 nats`, `inconclusive: 5 seeds
/// detect 0.029 to 0.079 nats, for 0.01 you need 18 to 110`.
std::string verdict_words(const Difference& difference, const ComparisonRules& rules, const std::string& unit);

}  // namespace cloze
