#pragma once
// Scaling laws: the loss of a model as a function of its size and of the tokens that it was trained on, fitted to runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "study/statistics/statistics.h"

namespace cloze {

/// A trained run as a scaling law sees it.
struct ScalingPoint {
  double size = 0;    ///< parameters, N
  double tokens = 0;  ///< read in training, D
  double loss = 0;    ///< held-out, L
  std::string name{};
  std::string changed{};  ///< what was changed on the way of its run; empty: nothing
  std::string run{};      ///< that has other points, too, which share its noise; empty: a run of its own
};

/// L(N, D) = E + A / N^alpha + B / D^beta. Source: Hoffmann et al. 2022 (arXiv 2203.15556), equation 2.
struct ScalingLaw {
  double E = 0, A = 0, B = 0, alpha = 0, beta = 0;
  double loss(double size, double tokens) const;
};
inline constexpr std::array law_names{"E", "A", "B", "alpha", "beta"};
std::array<double, 5> values_of(const ScalingLaw& law);

/// Training FLOPs of N parameters and D tokens, 6 N D. Source: Kaplan et al. 2020, section 2.1.
inline double training_flops(double size, double tokens) { return 6 * size * tokens; }

/// Size and tokens with the smallest loss for so many FLOPs. Source: Hoffmann et al. 2022, equation 4.
struct Allocation {
  double flops = 0, size = 0, tokens = 0, loss = 0;
};
Allocation compute_optimal(const ScalingLaw& law, double flops);
/// The exponents of N ~ C^a and D ~ C^b of these allocations: a = beta / (alpha + beta), b = alpha / (alpha + beta).
double size_exponent(const ScalingLaw& law);
double tokens_exponent(const ScalingLaw& law);

struct FitOptions {
  double huber_delta = 1e-3;  ///< residuals of log L above it count by their absolute value
  int64_t resamples = 1000;   ///< of the bootstrap over runs; 0: no intervals
  uint64_t seed = 1;          ///< of the bootstrap
  double confidence = 0.95;
};

/// A fitted law, and those of resampled runs, which give its intervals.
struct ScalingFit {
  ScalingLaw law{};
  double objective = 0;  ///< sum of the Huber losses
  std::vector<ScalingLaw> resampled{};
  double confidence = 0.95;
  /// Percentiles of `value` over the resampled laws that have one; the value of the law itself without resamples.
  template <class Value>
  Interval interval(const Value& value) const;
};

/// Numbers of the run of each point, from 0 on in the order of the points.
std::vector<size_t> runs_of(const std::vector<ScalingPoint>& points);

/// The law that fits best: the smallest sum of Huber losses of log L - log L(N, D), by L-BFGS from each of 4,500
/// starts, and by Newton's method to the end. Intervals come from resampled runs, each drawn with all of its points and
/// fitted from the best law. Throws DataError for points that do not
/// determine the five parameters: fewer than six, or fewer than three sizes or token counts. Source: Hoffmann et al.
/// 2022, section 3.3 and appendix D.2. Differs: L-BFGS sees logarithms from which their mean is subtracted, which moves
/// no optimum but separates A from alpha and B from beta, and runs until it stands still; their scale of the objective
/// ended it early (Besiroglu et al. 2024, arXiv 2404.10102).
ScalingFit fit_scaling_law(const std::vector<ScalingPoint>& points, const FitOptions& options);

/// Reasons not to trust a fit, each a sentence: a term that explains nothing, no floor, sizes and tokens that grow
/// together, parameters whose interval is wider than their value. Empty: none was found.
std::vector<std::string> doubts(const ScalingFit& fit, const std::vector<ScalingPoint>& points);

template <class Value>
Interval ScalingFit::interval(const Value& value) const {
  std::vector<double> all;
  for (const auto& one : resampled)
    if (std::isfinite(value(one))) all.push_back(value(one));
  if (all.empty()) return {value(law), value(law)};
  std::sort(all.begin(), all.end());
  return {quantile(all, (1 - confidence) / 2), quantile(all, (1 + confidence) / 2)};
}

}  // namespace cloze
