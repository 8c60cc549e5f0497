#include "evaluation/suites/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // columns

/// Dot product of the entries from `first` on.
double dot(const Vector& a, const Vector& b, size_t first = 0) {
  double sum = 0;
  for (size_t i = first; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A column without its mean, at unit length; a constant one becomes zeros.
struct Standardised {
  double mean = 0, length = 0;
  Vector values;
};
Standardised standardised(const Vector& column) {
  Standardised s{.mean = average(column), .values = column};
  double largest = 0;
  for (auto& x : s.values) {
    largest = std::max(largest, std::abs(x));
    x -= s.mean;
  }
  s.length = std::sqrt(dot(s.values, s.values));
  const bool constant = s.length <= 1e-13 * largest * std::sqrt(static_cast<double>(column.size()));
  if (constant) s.length = 0;
  for (auto& x : s.values) x = constant ? 0 : x / s.length;
  return s;
}

/// Subtracts twice the part of `x` along the unit vector `v`, whose entries before `first` are zero.
void reflect(Vector& x, const Vector& v, size_t first) {
  const double part = 2 * dot(x, v, first);
  for (size_t i = first; i < x.size(); ++i) x[i] -= part * v[i];
}

/// The triangle R in the columns of a pivoted QR, with Q^T y.
struct PivotedTriangle {
  Matrix columns;
  std::vector<size_t> order;  ///< the column at each step
  Vector rotated;             ///< Q^T y
  size_t rank = 0;
};
PivotedTriangle pivoted_triangle(Matrix columns, Vector y) {
  const size_t steps = std::min(columns.size(), y.size());
  PivotedTriangle t{.columns = std::move(columns), .order = {}, .rotated = std::move(y)};
  t.order.resize(t.columns.size());
  std::iota(t.order.begin(), t.order.end(), size_t{0});
  for (; t.rank < steps; ++t.rank) {
    const size_t k = t.rank;
    const auto rest = [&](size_t c) { return dot(t.columns[c], t.columns[c], k); };
    const auto longest = std::max_element(t.order.begin() + static_cast<std::ptrdiff_t>(k), t.order.end(),
                                          [&](size_t a, size_t b) { return rest(a) < rest(b); });
    std::swap(t.order[k], *longest);
    const auto& pivot = t.columns[t.order[k]];
    const double length = std::sqrt(dot(pivot, pivot, k));
    if (length < 1e-12) break;  // of columns of unit length: what is left of it is rounding
    Vector v(pivot.size(), 0);
    std::copy(pivot.begin() + static_cast<std::ptrdiff_t>(k), pivot.end(), v.begin() + static_cast<std::ptrdiff_t>(k));
    v[k] += v[k] < 0 ? -length : length;
    const double norm = std::sqrt(dot(v, v, k));
    for (auto& x : v) x /= norm;
    for (size_t c = k; c < t.order.size(); ++c) reflect(t.columns[t.order[c]], v, k);
    reflect(t.rotated, v, k);
  }
  return t;
}

void check(const Matrix& columns, const Vector& target) {
  require<DataError>(target.size() > columns.size() + 1, "a regression with ", columns.size() + 1,
                     " unknowns needs more rows than that; there are ", target.size(), "; add more");
  const auto finite = [](double x) { return std::isfinite(x); };
  for (const auto& column : columns) {
    require<DataError>(column.size() == target.size(), "a regression has columns of ", column.size(), " and ",
                       target.size(), " rows");
    require<DataError>(std::all_of(column.begin(), column.end(), finite), "a predictor of a regression is not finite");
  }
  require<DataError>(std::all_of(target.begin(), target.end(), finite), "the target of a regression is not finite");
}

}  // namespace

LeastSquares least_squares(const Matrix& columns, const Vector& target) {
  check(columns, target);
  std::vector<Standardised> scaled;
  Matrix design;
  for (const auto& column : columns) design.push_back(scaled.emplace_back(standardised(column)).values);
  const auto y = standardised(target);
  require<DataError>(y.length > 0, "the target of a regression is the same in all rows");
  const auto t = pivoted_triangle(std::move(design), y.values);

  LeastSquares fit{.intercept = y.mean,
                   .coefficients = Vector(columns.size(), 0),
                   .r2 = 1 - dot(t.rotated, t.rotated, t.rank),
                   .rank = static_cast<int64_t>(t.rank)};
  for (size_t k = t.rank; k-- > 0;) {
    double left = t.rotated[k];
    for (size_t c = k + 1; c < t.rank; ++c) left -= t.columns[t.order[c]][k] * fit.coefficients[t.order[c]];
    fit.coefficients[t.order[k]] = left / t.columns[t.order[k]][k];
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    if (scaled[c].length > 0) fit.coefficients[c] *= y.length / scaled[c].length;
    fit.intercept -= fit.coefficients[c] * scaled[c].mean;
  }
  return fit;
}

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double tolerance = 1.49012e-8;  // scipy.optimize.leastsq, of the sum of squares and of the parameters

double norm(const Vector& v) { return std::sqrt(dot(v, v)); }
Vector scaled(const Vector& diagonal, const Vector& v) {
  auto found = v;
  for (size_t i = 0; i < v.size(); ++i) found[i] *= diagonal[i];
  return found;
}
Vector sum_of(const Vector& a, const Vector& b) {
  auto found = a;
  for (size_t i = 0; i < a.size(); ++i) found[i] += b[i];
  return found;
}

/// The residuals of a problem, with the number of evaluations so far.
struct Problem {
  const Residuals& function;
  size_t count;
  int evaluations = 0;

  Vector at(const Vector& x) {
    Vector residuals(count);
    function(x, residuals);
    ++evaluations;
    return residuals;
  }
  /// Differences over a step of sqrt(epsilon), relative to each parameter, and backwards where it would pass `upper`.
  Matrix jacobian(Vector x, const Vector& residuals, const Vector* upper = nullptr) {
    Matrix columns;
    for (size_t p = 0; p < x.size(); ++p) {
      const double here = x[p];
      double step = std::sqrt(epsilon) * (here != 0 ? std::abs(here) : 1.0);
      if (upper && here + step > (*upper)[p]) step = -step;
      x[p] = here + step;
      auto column = at(x);
      for (size_t i = 0; i < count; ++i) column[i] = (column[i] - residuals[i]) / step;
      columns.push_back(std::move(column));
      x[p] = here;
    }
    return columns;
  }
};

/// Upper triangle R [P][P] of a QR, in columns, and the first P entries of Q^T y.
struct Triangle {
  Matrix columns;
  Vector rotated;

  /// R x = rotated. The unknown of a column that is zero is zero.
  Vector solve() const {
    auto x = rotated;
    for (size_t k = x.size(); k-- > 0;) {
      x[k] = columns[k][k] == 0 ? 0 : x[k] / columns[k][k];
      for (size_t i = 0; i < k; ++i) x[i] -= columns[k][i] * x[k];
    }
    return x;
  }
  /// R^T x = b.
  Vector solve_transposed(Vector b) const {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t i = 0; i < k; ++i) b[k] -= columns[k][i] * b[i];
      b[k] /= columns[k][k];
    }
    return b;
  }
  bool singular() const {
    for (size_t k = 0; k < columns.size(); ++k)
      if (columns[k][k] == 0) return true;
    return false;
  }
};

/// Householder QR.
Triangle triangle_of(Matrix columns, Vector y) {
  const size_t size = columns.size();
  for (size_t k = 0; k < size; ++k) {
    Vector v(columns[k].begin() + static_cast<std::ptrdiff_t>(k), columns[k].end());
    const double length = norm(v);
    if (length == 0) continue;
    v[0] += v[0] < 0 ? -length : length;
    const double square = dot(v, v);
    const auto reflect = [&](Vector& x) {
      double part = 0;
      for (size_t i = 0; i < v.size(); ++i) part += v[i] * x[k + i];
      for (size_t i = 0; i < v.size(); ++i) x[k + i] -= 2 * part / square * v[i];
    };
    for (size_t c = k; c < size; ++c) reflect(columns[c]);
    reflect(y);
  }
  y.resize(size);
  return {.columns = std::move(columns), .rotated = std::move(y)};
}

/// The triangle of the least-squares problem J p = -r, damped by sqrt(par) D p = 0.
Triangle damped(const Matrix& jacobian, const Vector& residuals, const Vector& diagonal, double par) {
  auto columns = jacobian;
  Vector y(residuals.size());
  std::transform(residuals.begin(), residuals.end(), y.begin(), [](double r) { return -r; });
  for (size_t p = 0; p < columns.size(); ++p) {
    columns[p].resize(residuals.size() + columns.size(), 0);
    columns[p][residuals.size() + p] = std::sqrt(par) * diagonal[p];
  }
  y.resize(residuals.size() + columns.size(), 0);
  return triangle_of(std::move(columns), std::move(y));
}

/// A step with its damping.
struct Step {
  Vector step;
  double par = 0;
};

/// The slope by which the damping is corrected (Moré 1978, equation 5.8): phi / (radius |R^-T D^2 p / |D p||^2).
double correction(const Triangle& t, const Vector& diagonal, const Vector& step, double phi, double radius) {
  const auto by_scale = scaled(diagonal, step);
  auto b = scaled(diagonal, by_scale);
  for (auto& x : b) x /= norm(by_scale);
  const double length = norm(t.solve_transposed(std::move(b)));
  return phi / radius / length / length;
}

/// The step whose scaled length is within a tenth of `radius`, or the undamped one if that is shorter: at most ten
/// corrections of `par` within its bounds. Source: Moré 1978, section 5, algorithm 5.5.
Step step_within(const Matrix& jacobian, const Vector& residuals, const Vector& diagonal, double radius, double par) {
  const auto whole = damped(jacobian, residuals, diagonal, 0);
  Step found{.step = whole.solve(), .par = 0};
  double phi = norm(scaled(diagonal, found.step)) - radius;
  if (phi <= 0.1 * radius) return found;
  double lower = whole.singular() ? 0 : correction(whole, diagonal, found.step, phi, radius);
  Vector gradient;
  for (size_t p = 0; p < jacobian.size(); ++p) gradient.push_back(dot(jacobian[p], residuals) / diagonal[p]);
  const double slope = norm(gradient);
  double upper = slope / radius;
  constexpr double tiny = std::numeric_limits<double>::min();
  if (upper == 0) upper = tiny / std::min(radius, 0.1);
  found.par = std::min(std::max(par, lower), upper);
  if (found.par == 0) found.par = slope / (phi + radius);
  for (int round = 1;; ++round) {
    if (found.par == 0) found.par = std::max(tiny, 0.001 * upper);
    const auto t = damped(jacobian, residuals, diagonal, found.par);
    found.step = t.solve();
    const double before = phi;
    phi = norm(scaled(diagonal, found.step)) - radius;
    if (std::abs(phi) <= 0.1 * radius || (lower == 0 && phi <= before && before < 0) || round == 10) return found;
    if (phi > 0) lower = std::max(lower, found.par);
    if (phi < 0) upper = std::min(upper, found.par);
    found.par = std::max(lower, found.par + correction(t, diagonal, found.step, phi, radius));
  }
}

/// What a step gains, relative to the sum of squares.
struct Gain {
  double actual = -1, predicted = 0, slope = 0;
  double ratio() const { return predicted != 0 ? actual / predicted : 0; }
  bool at_most(double bound) const { return std::abs(actual) <= bound && predicted <= bound && ratio() <= 2; }
};
Gain gain_of(const Matrix& jacobian, const Step& s, double scaled_length, double length, double new_length) {
  Vector linear(jacobian[0].size(), 0);
  for (size_t p = 0; p < jacobian.size(); ++p)
    for (size_t i = 0; i < linear.size(); ++i) linear[i] += jacobian[p][i] * s.step[p];
  const double along = norm(linear) / length, damping = std::sqrt(s.par) * scaled_length / length;
  Gain gain{.predicted = along * along + 2 * damping * damping, .slope = -(along * along + damping * damping)};
  if (0.1 * new_length < length) gain.actual = 1 - (new_length / length) * (new_length / length);
  return gain;
}

/// How much the radius shrinks after a poor step.
double shrinkage(const Gain& gain, double length, double new_length) {
  const double factor = gain.actual >= 0 ? 0.5 : 0.5 * gain.slope / (gain.slope + 0.5 * gain.actual);
  return 0.1 * new_length >= length || factor < 0.1 ? 0.1 : factor;
}

/// The cosine of the largest angle between the residuals and a column.
double steepness(const Matrix& jacobian, const Vector& residuals, double length) {
  double largest = 0;
  for (const auto& column : jacobian) {
    const double size = norm(column);
    if (size != 0) largest = std::max(largest, std::abs(dot(column, residuals) / length / size));
  }
  return largest;
}

/// The scale of each parameter: the largest length that its column has had.
void widen(Vector& diagonal, const Matrix& jacobian) {
  for (size_t p = 0; p < jacobian.size(); ++p) {
    const double size = norm(jacobian[p]);
    if (diagonal.size() == p) diagonal.push_back(size != 0 ? size : 1);
    diagonal[p] = std::max(diagonal[p], size);
  }
}

}  // namespace

std::optional<Vector> levenberg_marquardt(const Residuals& residuals, size_t count, Vector start, int max_evaluations) {
  if (count < start.size()) return {};
  Problem problem{residuals, count};
  auto x = std::move(start);
  auto r = problem.at(x);
  double length = norm(r), radius = 0, par = 0;
  Vector diagonal;
  for (bool first = true;;) {
    const auto jacobian = problem.jacobian(x, r);
    widen(diagonal, jacobian);
    if (first) radius = 100 * norm(scaled(diagonal, x));
    if (radius == 0) radius = 100;
    if (length == 0) return x;
    const double steep = steepness(jacobian, r, length);
    if (!(steep > 0)) return steep == 0 ? std::optional(x) : std::nullopt;
    for (bool accepted = false; !accepted;) {
      const auto s = step_within(jacobian, r, diagonal, radius, par);
      par = s.par;
      const double scaled_length = norm(scaled(diagonal, s.step));
      if (first) radius = std::min(radius, scaled_length);
      const auto there = sum_of(x, s.step);
      auto new_residuals = problem.at(there);
      const double new_length = norm(new_residuals);
      const auto gain = gain_of(jacobian, s, scaled_length, length, new_length);
      if (gain.ratio() <= 0.25) {
        const double factor = shrinkage(gain, length, new_length);
        radius = factor * std::min(radius, scaled_length / 0.1);
        par /= factor;
      } else if (par == 0 || gain.ratio() >= 0.75) {
        radius = 2 * scaled_length;
        par *= 0.5;
      }
      accepted = gain.ratio() >= 1e-4;
      if (accepted) {
        x = there;
        r = std::move(new_residuals);
        length = new_length;
        first = false;
      }
      const double size = norm(scaled(diagonal, x));
      if (gain.at_most(tolerance) || radius <= tolerance * size) return x;
      if (problem.evaluations >= max_evaluations || gain.at_most(epsilon) || radius <= epsilon * size ||
          steep <= epsilon || !std::isfinite(radius))
        return {};
    }
  }
}

std::optional<Vector> bounded_least_squares(const Residuals& residuals, size_t count, Vector start, const Vector& lower,
                                            const Vector& upper, int max_evaluations) {
  Problem problem{residuals, count};
  auto x = std::move(start);
  auto r = problem.at(x);
  double damping = 1e-3;
  while (problem.evaluations < max_evaluations) {
    auto jacobian = problem.jacobian(x, r, &upper);
    Vector diagonal;
    double pressing = 0;  // the steepest direction that is not held
    for (size_t p = 0; p < x.size(); ++p) {
      const double gradient = dot(jacobian[p], r);
      const bool held = (x[p] <= lower[p] && gradient > 0) || (x[p] >= upper[p] && gradient < 0);
      if (held) std::fill(jacobian[p].begin(), jacobian[p].end(), 0);
      const double size = norm(jacobian[p]);
      diagonal.push_back(size != 0 ? size : 1);
      if (size != 0) pressing = std::max(pressing, std::abs(gradient) / size);
    }
    if (pressing <= 1e-10 * norm(r)) return x;
    for (bool accepted = false; !accepted;) {
      auto there = sum_of(x, damped(jacobian, r, diagonal, damping).solve());
      for (size_t p = 0; p < x.size(); ++p) there[p] = std::clamp(there[p], lower[p], upper[p]);
      auto new_residuals = problem.at(there);
      const double before = norm(r), after = norm(new_residuals);
      accepted = after < before;
      damping = accepted ? std::max(damping * 0.2, 1e-15) : damping * 4;
      if (accepted) {
        x = std::move(there);
        r = std::move(new_residuals);
        if (before - after <= 1e-13 * before) return x;
      }
      if (damping > 1e12) return x;  // no shorter step descends any more
      if (problem.evaluations >= max_evaluations && !accepted) return {};
    }
  }
  return {};
}

}  // namespace cloze
