#include "core/report/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cloze {

Bounds wilson(double right, int64_t count) {
  const auto n = static_cast<double>(count);
  const double fraction = right / n, z2 = normal_quantile * normal_quantile;
  const double middle = (fraction + z2 / (2 * n)) / (1 + z2 / n);
  const double half = normal_quantile / (1 + z2 / n) * std::sqrt(fraction * (1 - fraction) / n + z2 / (4 * n * n));
  return {right > 0 ? std::max(0.0, middle - half) : 0, right < n ? std::min(1.0, middle + half) : 1};
}

double mcnemar_p(int64_t only_first, int64_t only_second) {
  const auto n = static_cast<double>(only_first + only_second);
  if (only_first == only_second) return 1;
  // From the tail inwards: terms of the binomial distribution with p = 1/2, each from the one before.
  const auto fewer = static_cast<double>(std::min(only_first, only_second));
  double log_term = -n * std::log(2.0);
  for (double k = 0; k < fewer; ++k) log_term += std::log((n - k) / (k + 1));
  double sum = 0, term = 1;  // relative to the term of `fewer`
  for (double k = fewer; k >= 0 && term > 1e-18 * sum; --k) {
    sum += term;
    term *= k / (n - k + 1);
  }
  return std::min(1.0, 2 * sum * std::exp(log_term));
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

}  // namespace cloze
