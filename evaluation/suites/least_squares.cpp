#include "evaluation/suites/least_squares.h"

#include <cminpack.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace cloze {

namespace {

using Vector = std::vector<double>;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A column without its mean, at unit length; a constant one becomes zeros.
struct Standardised {
  double mean = 0, length = 0;
  VectorXd values;
};
Standardised standardised(const Vector& column) {
  const Eigen::Map<const VectorXd> vector(column.data(), std::ssize(column));
  Standardised s{.mean = vector.mean(), .values = vector.array() - vector.mean()};
  s.length = s.values.norm();
  const double rounding = 1e-13 * vector.lpNorm<Eigen::Infinity>() * std::sqrt(static_cast<double>(column.size()));
  if (s.length <= rounding) s.length = 0;
  s.values *= s.length > 0 ? 1 / s.length : 0;
  return s;
}

void check(const std::vector<Vector>& columns, const Vector& target) {
  require<DataError>(target.size() > columns.size() + 1, "a regression with ", columns.size() + 1,
                     " unknowns needs more rows than that; there are ", target.size(), "; add more");
  const auto finite = [](double x) { return std::isfinite(x); };
  for (const auto& column : columns) {
    require<DataError>(column.size() == target.size(), "a regression has columns of ", column.size(), " and ",
                       target.size(), " rows");
    require<DataError>(std::ranges::all_of(column, finite), "a predictor of a regression is not finite");
  }
  require<DataError>(std::ranges::all_of(target, finite), "the target of a regression is not finite");
}

}  // namespace

LeastSquares least_squares(const std::vector<Vector>& columns, const Vector& target) {
  check(columns, target);
  const auto count = std::ssize(columns);
  std::vector<Standardised> scaled;
  for (const auto& column : columns) scaled.push_back(standardised(column));
  MatrixXd design(std::ssize(target), count);
  for (Eigen::Index c = 0; c < count; ++c) design.col(c) = scaled[static_cast<size_t>(c)].values;
  const auto y = standardised(target);
  require<DataError>(y.length > 0, "the target of a regression is the same in all rows");
  Eigen::ColPivHouseholderQR<MatrixXd> qr(design);
  qr.setThreshold(1e-12);  // of columns of unit length: what is left of one is rounding
  const auto rank = qr.rank();
  const VectorXd rotated = qr.householderQ().setLength(rank).adjoint() * y.values;
  VectorXd by_step = VectorXd::Zero(count);
  by_step.head(rank) = qr.matrixR().topLeftCorner(rank, rank).triangularView<Eigen::Upper>().solve(rotated.head(rank));
  const VectorXd coefficients = qr.colsPermutation() * by_step;
  LeastSquares fit{.intercept = y.mean,
                   .coefficients = {coefficients.begin(), coefficients.end()},
                   .r2 = 1 - rotated.tail(rotated.size() - rank).squaredNorm(),
                   .rank = rank};
  for (size_t c = 0; c < columns.size(); ++c) {
    if (scaled[c].length > 0) fit.coefficients[c] *= y.length / scaled[c].length;
    fit.intercept -= fit.coefficients[c] * scaled[c].mean;
  }
  return fit;
}

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

int residuals_for_minpack(void* function, int rows, int size, const double* x, double* residuals, int) {
  (*static_cast<const Residuals*>(function))({x, static_cast<size_t>(size)}, {residuals, static_cast<size_t>(rows)});
  return 0;
}

/// Differences over a step of sqrt(epsilon), relative to each parameter, and backwards where it would pass `upper`.
MatrixXd jacobian_at(const std::function<VectorXd(const Vector&)>& at, Vector x, const VectorXd& residuals,
                     const Vector& upper) {
  MatrixXd jacobian(residuals.size(), std::ssize(x));
  for (size_t p = 0; p < x.size(); ++p) {
    const double here = x[p];
    double step = std::sqrt(epsilon) * (here != 0 ? std::abs(here) : 1.0);
    if (here + step > upper[p]) step = -step;
    x[p] = here + step;
    jacobian.col(static_cast<Eigen::Index>(p)) = (at(x) - residuals) / step;
    x[p] = here;
  }
  return jacobian;
}

/// The step p of J p = -r, damped by sqrt(par) D p = 0.
VectorXd damped_step(const MatrixXd& jacobian, const VectorXd& residuals, const VectorXd& diagonal, double par) {
  const auto rows = jacobian.rows(), size = jacobian.cols();
  MatrixXd damped(rows + size, size);
  damped << jacobian, MatrixXd((std::sqrt(par) * diagonal).asDiagonal());
  VectorXd y(rows + size);
  y << -residuals, VectorXd::Zero(size);
  return damped.householderQr().solve(y);
}

}  // namespace

std::optional<Vector> levenberg_marquardt(const Residuals& residuals, size_t count, Vector start, int max_evaluations) {
  constexpr double tolerance = 1.49012e-8, factor = 100;  // of scipy.optimize.leastsq
  const auto rows = static_cast<int>(count), size = static_cast<int>(start.size());
  if (rows < size) return {};
  Vector at_start(count), scale(start.size()), jacobian(count * start.size()), rotated(start.size()), a(start.size()),
      b(start.size()), c(start.size()), of_rows(count);
  std::vector<int> order(start.size());
  int evaluations = 0;
  auto function = residuals;
  const int how =
      lmdif(residuals_for_minpack, &function, rows, size, start.data(), at_start.data(), tolerance, tolerance, 0,
            max_evaluations, epsilon, scale.data(), 1, factor, 0, &evaluations, jacobian.data(), rows, order.data(),
            rotated.data(), a.data(), b.data(), c.data(), of_rows.data());
  constexpr int first_success = 1, last_success = 4;  // as scipy.optimize.curve_fit has it
  return how >= first_success && how <= last_success ? std::optional(start) : std::nullopt;
}

std::optional<Vector> bounded_least_squares(const Residuals& residuals, size_t count, Vector start, const Vector& lower,
                                            const Vector& upper, int max_evaluations) {
  int evaluations = 0;
  const auto at = [&](const Vector& x) {
    VectorXd values(static_cast<Eigen::Index>(count));
    residuals(x, {values.data(), count});
    ++evaluations;
    return values;
  };
  auto x = std::move(start);
  auto r = at(x);
  double damping = 1e-3;
  while (evaluations < max_evaluations) {
    auto jacobian = jacobian_at(at, x, r, upper);
    VectorXd diagonal(jacobian.cols());
    double pressing = 0;  // the steepest direction that is not held
    for (size_t p = 0; p < x.size(); ++p) {
      auto column = jacobian.col(static_cast<Eigen::Index>(p));
      const double gradient = column.dot(r);
      const bool held = (x[p] <= lower[p] && gradient > 0) || (x[p] >= upper[p] && gradient < 0);
      if (held) column.setZero();
      const double size = column.norm();
      diagonal[static_cast<Eigen::Index>(p)] = size != 0 ? size : 1;
      if (size != 0) pressing = std::max(pressing, std::abs(gradient) / size);
    }
    if (pressing <= 1e-10 * r.norm()) return x;
    for (bool accepted = false; !accepted;) {
      const auto step = damped_step(jacobian, r, diagonal, damping);
      auto there = x;
      for (size_t p = 0; p < x.size(); ++p)
        there[p] = std::clamp(x[p] + step[static_cast<Eigen::Index>(p)], lower[p], upper[p]);
      auto new_residuals = at(there);
      const double before = r.norm(), after = new_residuals.norm();
      accepted = after < before;
      damping = accepted ? std::max(damping * 0.2, 1e-15) : damping * 4;
      if (accepted) {
        x = std::move(there);
        r = std::move(new_residuals);
        if (before - after <= 1e-13 * before) return x;
      }
      if (damping > 1e12) return x;  // no shorter step descends any more
      if (evaluations >= max_evaluations && !accepted) return {};
    }
  }
  return {};
}

}  // namespace cloze
