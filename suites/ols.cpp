#include "suites/ols.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace cloze {

namespace {

using Column = std::vector<double>;

double column_mean(const Column& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Dot product of the entries from `first` on.
double dot_from(const Column& a, const Column& b, size_t first = 0) {
  double sum = 0;
  for (size_t i = first; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A column without its mean, at unit length; a constant one becomes zeros.
struct Standardised {
  double mean = 0, length = 0;
  Column values;
};
Standardised standardised(const Column& column) {
  Standardised s{.mean = column_mean(column), .values = column};
  double largest = 0;
  for (auto& x : s.values) {
    largest = std::max(largest, std::abs(x));
    x -= s.mean;
  }
  s.length = std::sqrt(dot_from(s.values, s.values));
  const bool constant = s.length <= 1e-13 * largest * std::sqrt(static_cast<double>(column.size()));
  if (constant) s.length = 0;
  for (auto& x : s.values) x = constant ? 0 : x / s.length;
  return s;
}

/// Subtracts twice the part of `x` along the unit vector `v`, whose entries before `first` are zero.
void reflect(Column& x, const Column& v, size_t first) {
  const double part = 2 * dot_from(x, v, first);
  for (size_t i = first; i < x.size(); ++i) x[i] -= part * v[i];
}

/// The triangle R in the columns of a pivoted QR, with Q^T y.
struct PivotedTriangle {
  std::vector<Column> columns;
  std::vector<size_t> order;  ///< the column at each step
  Column rotated;             ///< Q^T y
  size_t rank = 0;
};
PivotedTriangle pivoted_triangle(std::vector<Column> columns, Column y) {
  const size_t steps = std::min(columns.size(), y.size());
  PivotedTriangle t{.columns = std::move(columns), .order = {}, .rotated = std::move(y)};
  t.order.resize(t.columns.size());
  std::iota(t.order.begin(), t.order.end(), size_t{0});
  for (; t.rank < steps; ++t.rank) {
    const size_t k = t.rank;
    const auto rest = [&](size_t c) { return dot_from(t.columns[c], t.columns[c], k); };
    const auto longest = std::max_element(t.order.begin() + static_cast<std::ptrdiff_t>(k), t.order.end(),
                                          [&](size_t a, size_t b) { return rest(a) < rest(b); });
    std::swap(t.order[k], *longest);
    const auto& pivot = t.columns[t.order[k]];
    const double length = std::sqrt(dot_from(pivot, pivot, k));
    if (length < 1e-12) break;  // of columns of unit length: what is left of it is rounding
    Column v(pivot.size(), 0);
    std::copy(pivot.begin() + static_cast<std::ptrdiff_t>(k), pivot.end(), v.begin() + static_cast<std::ptrdiff_t>(k));
    v[k] += v[k] < 0 ? -length : length;
    const double norm = std::sqrt(dot_from(v, v, k));
    for (auto& x : v) x /= norm;
    for (size_t c = k; c < t.order.size(); ++c) reflect(t.columns[t.order[c]], v, k);
    reflect(t.rotated, v, k);
  }
  return t;
}

void check(const std::vector<Column>& columns, const Column& target) {
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

LeastSquares least_squares(const std::vector<Column>& columns, const Column& target) {
  check(columns, target);
  std::vector<Standardised> scaled;
  std::vector<Column> design;
  for (const auto& column : columns) design.push_back(scaled.emplace_back(standardised(column)).values);
  const auto y = standardised(target);
  require<DataError>(y.length > 0, "the target of a regression is the same in all rows");
  const auto t = pivoted_triangle(std::move(design), y.values);

  LeastSquares fit{.intercept = y.mean,
                   .coefficients = Column(columns.size(), 0),
                   .r2 = 1 - dot_from(t.rotated, t.rotated, t.rank),
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

}  // namespace cloze
