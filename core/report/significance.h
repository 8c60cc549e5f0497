#pragma once
// Intervals of shares, and p values of paired answers and of several questions at once.
#include <cstdint>
#include <vector>

namespace cloze {

/// A 95 % interval.
struct Bounds {
  double low = 0, high = 0;
  bool operator==(const Bounds&) const = default;
};
inline constexpr double normal_quantile = 1.959963984540054;  ///< of 0.975: half the width of such an interval

/// The interval of a share of independent items; `right` may count a tie as a half. Source: Wilson 1927, "Probable
/// inference, the law of succession, and statistical inference", p. 210.
Bounds wilson(double right, int64_t count);

/// McNemar's exact test: the two-sided p of so many items that one alone has right, by the binomial distribution.
/// Source: McNemar 1947; as `binomtest(b, b + c).pvalue` of SciPy, not its mid-p form.
double mcnemar_p(int64_t only_first, int64_t only_second);

/// Holm's correction of several p values, in their order. Source: Holm 1979.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace cloze
