#include "train/inspection/inspect.h"

#include <ATen/ATen.h>

#include <cmath>

namespace cloze {

namespace {

RuleCheck check(std::string name, double observed, double expected, double p) {
  return {std::move(name), observed, expected, p, p >= 1e-4};
}

}  // namespace

RuleCheck strict_check(std::string name, int64_t violations) {
  return check(std::move(name), static_cast<double>(violations), 0, violations == 0 ? 1 : 0);
}

RuleCheck enough_check(std::string name, double observed, double wanted) {
  return check(std::move(name), observed, wanted, observed >= 0.75 * wanted ? 1 : 0);
}

RuleCheck sum_check(std::string name, double observed, double expected, double variance) {
  const double off = std::abs(observed - expected);
  return check(std::move(name), observed, expected,
               variance > 0 ? std::erfc(off / std::sqrt(2 * variance))
               : off < 1e-6 ? 1
                            : 0);
}

RuleCheck fit_check(std::string name, const std::vector<double>& counts, const std::vector<double>& expected) {
  std::vector<std::pair<double, double>> cells;  // observed, expected
  bool open = false, impossible = false;
  for (size_t n = 0; n < std::max(counts.size(), expected.size()); ++n) {
    const double observed = n < counts.size() ? counts[n] : 0, wanted = n < expected.size() ? expected[n] : 0;
    impossible = impossible || (observed > 0 && wanted <= 0);
    if (!open) cells.emplace_back();
    cells.back().first += observed, cells.back().second += wanted;
    open = cells.back().second < 5;
  }
  if (open && cells.size() > 1) {  // a small last cell is merged with the one before
    const auto rest = cells.back();
    cells.pop_back();
    cells.back().first += rest.first, cells.back().second += rest.second;
  }
  double chi = 0;
  const auto degrees = static_cast<double>(cells.size()) - 1;
  for (const auto& [observed, wanted] : cells)
    chi += wanted > 0 ? (observed - wanted) * (observed - wanted) / wanted : 0;
  const double tail =
      degrees < 1 ? 1
                  : at::special_gammaincc(at::tensor(degrees / 2, at::kDouble), at::tensor(chi / 2, at::kDouble))
                        .item<double>();
  return check(std::move(name), chi, std::max(degrees, 0.0), impossible ? 0 : tail);
}

std::vector<double> part_lengths(int64_t total, int64_t parts) {
  std::vector<double> p(static_cast<size_t>(total) + 1);
  if (parts == 1) p.back() = 1;
  if (parts < 2) return p;
  p[1] = static_cast<double>(parts - 1) / static_cast<double>(total - 1);
  for (int64_t n = 1; n <= total - parts; ++n)
    p[static_cast<size_t>(n) + 1] =
        p[static_cast<size_t>(n)] * static_cast<double>(total - n - parts + 1) / static_cast<double>(total - n - 1);
  return p;
}

}  // namespace cloze
