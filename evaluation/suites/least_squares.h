#pragma once
// Least squares in double: linear, and of a handful of parameters.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace cloze {

/// A linear fit with an intercept.
struct LeastSquares {
  double intercept = 0;
  std::vector<double> coefficients;  ///< [K]; 0 for a column that the others determine
  double r2 = 0;                     ///< fraction of the variance that the fit explains
  int64_t rank = 0;                  ///< independent columns, without the intercept
};

/// The fit of `target` [N] by `columns` [K][N] and an intercept, by a pivoted Householder QR of the centred columns at
/// unit length. Throws DataError for values that are not finite, a constant target, and fewer rows than unknowns.
LeastSquares least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& target);

/// The residuals [N] of parameters [P].
using Residuals = std::function<void(std::span<const double> parameters, std::span<double> residuals)>;

/// The parameters that minimise the sum of squared residuals near `start`; none if no minimum was found within
/// `max_evaluations` evaluations of the residuals.
///
/// MINPACK's lmdif with the arguments of scipy.optimize.curve_fit without bounds, so that it takes the same steps.
/// Source: Moré 1978, "The Levenberg-Marquardt algorithm: implementation and theory".
std::optional<std::vector<double>> levenberg_marquardt(const Residuals& residuals, size_t count,
                                                       std::vector<double> start, int max_evaluations);

/// The same within bounds [P] on the parameters, on which the minimum may lie.
///
/// Gauss-Newton steps with Levenberg's damping, projected on the bounds; parameters at a bound that the gradient
/// presses on are held. Source: Kanzow, Yamashita and Fukushima 2004, section 4 (projected Levenberg-Marquardt).
std::optional<std::vector<double>> bounded_least_squares(const Residuals& residuals, size_t count,
                                                         std::vector<double> start, const std::vector<double>& lower,
                                                         const std::vector<double>& upper, int max_evaluations);

}  // namespace cloze
