#pragma once
// p values of paired answers, and of several questions at once.
#include <cstdint>
#include <vector>

namespace cloze {

/// McNemar's exact test: the two-sided p of so many items that one alone has right, by the binomial distribution.
/// Source: McNemar 1947; as `binomtest(b, b + c).pvalue` of SciPy, not its mid-p form.
double mcnemar_p(int64_t only_first, int64_t only_second);

/// Holm's correction of several p values, in their order. Source: Holm 1979.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace cloze
