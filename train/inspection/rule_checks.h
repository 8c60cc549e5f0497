#pragma once
// Goodness-of-fit tests: observed counts against the expectations of a rule.
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

/// The result of one test.
struct RuleCheck {
  std::string name;
  double observed = 0, expected = 0;
  double p_value = 1;  ///< for a strict rule: 1 if it holds, 0 if it is violated
  bool passed = true;  ///< p_value at least 1e-4
};

/// A strict rule and the number of its violations.
RuleCheck strict_check(std::string name, int64_t violations);
/// A sum that rules of whole units may leave below what was wanted, by less than a quarter of it.
RuleCheck enough_check(std::string name, double observed, double wanted);
/// A sum of independent draws against its expectation, by the normal approximation; with variance 0 they must be equal.
RuleCheck sum_check(std::string name, double observed, double expected, double variance);
/// Counts [n] of independent draws against their expectations [n], by Pearson's chi-square: observed is the statistic,
/// expected its degrees of freedom. Adjacent cells are merged until at least 5 are expected; a single cell always
/// passes. A count with expectation 0 violates the rule.
RuleCheck fit_check(std::string name, const std::vector<double>& counts, const std::vector<double>& expected);

/// P(a part has length n) [n] if all compositions of `total` into `parts` positive parts are equally likely:
/// C(total - n - 1, parts - 2) / C(total - 1, parts - 1).
std::vector<double> part_lengths(int64_t total, int64_t parts);

}  // namespace cloze
