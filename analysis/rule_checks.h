#pragma once
// Tests of fit: what was counted against what a rule expects.
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

/// A rule and what was found.
struct RuleCheck {
  std::string name;
  double observed = 0, expected = 0;
  double p_value = 1;  ///< of the deviation being chance; 0 for a rule without exceptions that was broken
  bool passed = true;  ///< p_value at least 1e-4
};

/// A rule without exceptions that was broken so often.
RuleCheck none_check(std::string name, int64_t broken);
/// A sum of independent draws against its expectation, by the normal distribution; without variance it must be met.
RuleCheck sum_check(std::string name, double observed, double expected, double variance);
/// Counts [n] of independent draws against their expectations [n], by Pearson's chi-square: the statistic and its
/// degrees of freedom. Neighbours are one cell until 5 are expected in it; a single cell says nothing. A count where
/// none is expected breaks the rule.
RuleCheck fit_check(std::string name, const std::vector<double>& counts, const std::vector<double>& expected);

/// P(a part is n long) [n] when all ways to cut `total` into so many positive parts are equally likely: C(total - n -
/// 1, parts - 2) / C(total - 1, parts - 1).
std::vector<double> part_lengths(int64_t total, int64_t parts);

}  // namespace cloze
