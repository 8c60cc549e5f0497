#pragma once
// Ordinary least squares in double.
#include <cstdint>
#include <vector>

namespace cloze {

/// A linear fit with an intercept.
struct LeastSquares {
  double intercept = 0;
  std::vector<double> coefficients;  ///< [K]; 0 for a column that the others determine
  double r2 = 0;                     ///< share of the variance that the fit explains
  int64_t rank = 0;                  ///< independent columns, without the intercept
};

/// The fit of `target` [N] by `columns` [K][N] and an intercept, by a pivoted Householder QR of the centred columns at
/// unit length. Throws DataError for values that are not finite, a constant target, and fewer rows than unknowns.
LeastSquares least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& target);

}  // namespace cloze
