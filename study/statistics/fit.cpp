#include "study/statistics/fit.h"

#include <algorithm>
#include <cmath>
#include <lbfgs.h>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/config/config.h"
#include "core/random.h"
#include "core/text.h"

namespace cloze {

namespace {

using Vector = std::array<double, 5>;  // log of the terms at the centre of the data, [A, B, E]; alpha, beta

/// The sum of Huber losses of a law on weighted points, as L-BFGS sees it.
struct Problem {
  std::vector<double> x{}, y{}, loss{};  ///< [P], logs of size and tokens without their mean, log of the loss
  std::vector<double> weight{};          ///< [P], how often a point was drawn
  double size = 0, tokens = 0;           ///< means of the logs
  double delta = 1e-3;
};

Problem problem_of(const std::vector<ScalingPoint>& points) {
  Problem p;
  const auto count = static_cast<double>(points.size());
  for (const auto& point : points) {
    p.size += std::log(point.size) / count;
    p.tokens += std::log(point.tokens) / count;
  }
  for (const auto& point : points) {
    p.x.push_back(std::log(point.size) - p.size);
    p.y.push_back(std::log(point.tokens) - p.tokens);
    p.loss.push_back(std::log(point.loss));
  }
  p.weight.assign(points.size(), 1);
  return p;
}

ScalingLaw law_of(const Problem& p, const Vector& v) {
  return {.E = std::exp(v[2]),
          .A = std::exp(v[0] + v[3] * p.size),
          .B = std::exp(v[1] + v[4] * p.tokens),
          .alpha = v[3],
          .beta = v[4]};
}

/// The objective divided by delta, close to a sum of absolute residuals, and its gradient.
double evaluate(const Problem& p, const double* v, double* gradient) {
  std::fill(gradient, gradient + 5, 0.0);
  double sum = 0;
  for (size_t i = 0; i < p.x.size(); ++i) {
    if (p.weight[i] == 0) continue;
    const double a = v[0] - v[3] * p.x[i], b = v[1] - v[4] * p.y[i], e = v[2];
    const double top = std::max({a, b, e});
    const double ea = std::exp(a - top), eb = std::exp(b - top), ee = std::exp(e - top);
    const double residual = top + std::log(ea + eb + ee) - p.loss[i], far = std::abs(residual);
    sum += p.weight[i] * (far <= p.delta ? 0.5 * residual * residual / p.delta : far - 0.5 * p.delta);
    const double slope = p.weight[i] * std::clamp(residual / p.delta, -1.0, 1.0) / (ea + eb + ee);
    gradient[0] += slope * ea;
    gradient[1] += slope * eb;
    gradient[2] += slope * ee;
    gradient[3] -= slope * ea * p.x[i];
    gradient[4] -= slope * eb * p.y[i];
  }
  return sum;
}

/// A descent in steps of `scale` around a start, so that the first trial of the line search has the right size.
struct Descent {
  const Problem& problem;
  Vector start;
  double scale;
  Vector at(const double* steps) const {
    auto v = start;
    for (size_t k = 0; k < v.size(); ++k) v[k] += scale * steps[k];
    return v;
  }
};

double evaluate_descent(void* instance, const double* steps, double* gradient, int, double) {
  const auto& descent = *static_cast<const Descent*>(instance);
  const double objective = evaluate(descent.problem, descent.at(steps).data(), gradient);
  for (int k = 0; k < 5; ++k) gradient[k] *= descent.scale;
  return objective;
}

/// Descends from `v` until the gradient is below `tolerance`, or nothing more can be gained; returns the objective.
double descend(const Problem& problem, Vector& v, double scale, double tolerance) {
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.m = 10;
  parameters.epsilon = tolerance;
  parameters.max_iterations = 1000;
  parameters.max_linesearch = 60;
  Descent descent{.problem = problem, .start = v, .scale = scale};
  Vector steps{};
  double objective = 0;
  lbfgs(5, steps.data(), &objective, evaluate_descent, nullptr, &descent, &parameters);
  // Where the line search can gain nothing more it reports an error and leaves the best point.
  const auto end = descent.at(steps.data());
  if (std::all_of(end.begin(), end.end(), [](double x) { return std::isfinite(x); })) v = end;
  Vector unused;
  return evaluate(problem, v.data(), unused.data());
}

using Matrix = std::array<Vector, 5>;

/// Adds `factor` times the outer product of a vector with itself.
void add_square(Matrix& sum, double factor, const Vector& v) {
  for (size_t i = 0; i < v.size(); ++i)
    for (size_t j = 0; j < v.size(); ++j) sum[i][j] += factor * v[i] * v[j];
}

/// Second derivatives of `evaluate`, and their part that is never negative: the squared gradients of residuals.
struct Curvature {
  Matrix hessian{}, squares{};
};

Curvature curvature_at(const Problem& p, const Vector& v) {
  Curvature curvature;
  for (size_t i = 0; i < p.x.size(); ++i) {
    if (p.weight[i] == 0) continue;
    const std::array<Vector, 3> terms{{{1, 0, 0, -p.x[i], 0}, {0, 1, 0, 0, -p.y[i]}, {0, 0, 1, 0, 0}}};
    const std::array logs{v[0] - v[3] * p.x[i], v[1] - v[4] * p.y[i], v[2]};
    const double top = std::ranges::max(logs);
    double sum = 0;
    for (const double one : logs) sum += std::exp(one - top);
    const double residual = top + std::log(sum) - p.loss[i], slope = std::clamp(residual / p.delta, -1.0, 1.0);
    Vector gradient{};
    for (size_t k = 0; k < terms.size(); ++k) {
      const double fraction = std::exp(logs[k] - top) / sum;
      for (size_t j = 0; j < gradient.size(); ++j) gradient[j] += fraction * terms[k][j];
      add_square(curvature.hessian, p.weight[i] * slope * fraction, terms[k]);
    }
    const bool is_near = std::abs(residual) <= p.delta;
    add_square(curvature.hessian, p.weight[i] * ((is_near ? 1 / p.delta : 0) - slope), gradient);
    add_square(curvature.squares, p.weight[i], gradient);
  }
  return curvature;
}

/// The solution of `a x = b` for a matrix that is symmetric and positive; none for others. By Cholesky.
std::optional<Vector> solved(Matrix a, Vector b) {
  for (size_t j = 0; j < b.size(); ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    if (!(a[j][j] > 0)) return std::nullopt;
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i < b.size(); ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < b.size(); ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = b.size(); i-- > 0;) {
    for (size_t k = i + 1; k < b.size(); ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// Newton's method with the damping of Levenberg and Marquardt, until the gradient is flat or no step gains anything.
double polish(const Problem& problem, Vector& v) {
  constexpr double flat = 1e-12, least_damping = 1e-12, most_damping = 1e16;
  Vector gradient;
  double objective = evaluate(problem, v.data(), gradient.data()), damping = 1e-3 / problem.delta;
  for (int iteration = 0; iteration < 300; ++iteration) {
    const auto is_flat = [](double slope) { return std::abs(slope) < flat; };
    if (std::ranges::all_of(gradient, is_flat)) break;
    const auto curvature = curvature_at(problem, v);
    bool has_gained = false;
    for (; !has_gained && damping < most_damping; damping *= 4) {
      auto damped = curvature.hessian;
      for (size_t k = 0; k < v.size(); ++k) damped[k][k] += damping * (curvature.squares[k][k] + 1e-12);
      const auto step = solved(damped, gradient);
      if (!step) continue;
      auto next = v;
      for (size_t k = 0; k < v.size(); ++k) next[k] -= (*step)[k];
      Vector slope;
      const double there = evaluate(problem, next.data(), slope.data());
      if (!(there < objective)) continue;
      v = next;
      objective = there;
      gradient = slope;
      has_gained = true;
    }
    if (!has_gained) break;
    damping = std::max(least_damping, damping / 40);
  }
  return objective;
}

/// The optimum near `v` for a delta that may be so small that the objective has edges: by way of larger ones.
double descend_to(Problem& problem, Vector& v, double delta) {
  for (double at = std::max(delta, 1e-3);; at = std::max(delta, at / 2)) {
    problem.delta = at;
    descend(problem, v, at, 1e-13);
    const double objective = polish(problem, v);
    if (at == delta) return objective;
  }
}

/// The best of the starts of Hoffmann et al. 2022, appendix D.2.
Vector best_of_starts(const Problem& problem) {
  Vector best{};
  double least = std::numeric_limits<double>::infinity();
  for (double a = 0; a <= 25; a += 5)
    for (double b = 0; b <= 25; b += 5)
      for (double e = -1; e <= 1; e += 0.5)
        for (double alpha = 0; alpha <= 2; alpha += 0.5)
          for (double beta = 0; beta <= 2; beta += 0.5) {
            Vector v{a - alpha * problem.size, b - beta * problem.tokens, e, alpha, beta};
            const double objective = descend(problem, v, 1, 1e-4);
            if (objective < least) least = objective, best = v;
          }
  return best;
}

/// Numbers of different values, where values within 0.1 % of each other are one.
size_t distinct(const std::vector<ScalingPoint>& points, double ScalingPoint::* field) {
  std::set<long> values;
  for (const auto& point : points) values.insert(std::lround(std::log(point.*field) * 1000));
  return values.size();
}

void require_enough(const std::vector<ScalingPoint>& points) {
  require<DataError>(points.size() >= 6, points.size(), points.size() == 1 ? " point does" : " points do",
                     " not determine the 5 parameters of a scaling law; give 6 or more");
  const auto sizes = distinct(points, &ScalingPoint::size), tokens = distinct(points, &ScalingPoint::tokens);
  require<DataError>(sizes >= 3, sizes == 1 ? "all points have the same size" : "the points have 2 sizes",
                     ", which does not tell A, alpha and E apart; train models of 3 sizes or more");
  require<DataError>(tokens >= 3, tokens == 1 ? "all points have the same tokens" : "the points have 2 token counts",
                     ", which does not tell B, beta and E apart; train with 3 token counts or more");
}

double correlation(const Problem& p) {
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < p.x.size(); ++i) xx += p.x[i] * p.x[i], yy += p.y[i] * p.y[i], xy += p.x[i] * p.y[i];
  return xy / std::sqrt(xx * yy);
}

}  // namespace

double ScalingLaw::loss(double size, double tokens) const {
  return E + A * std::pow(size, -alpha) + B * std::pow(tokens, -beta);
}

std::array<double, 5> values_of(const ScalingLaw& law) { return {law.E, law.A, law.B, law.alpha, law.beta}; }

double size_exponent(const ScalingLaw& law) { return law.beta / (law.alpha + law.beta); }
double tokens_exponent(const ScalingLaw& law) { return law.alpha / (law.alpha + law.beta); }

Allocation compute_optimal(const ScalingLaw& law, double flops) {
  const double log_g = (std::log(law.alpha * law.A) - std::log(law.beta * law.B)) / (law.alpha + law.beta);
  Allocation best{.flops = flops};
  best.size = std::exp(log_g + size_exponent(law) * std::log(flops / 6));
  best.tokens = flops / 6 / best.size;
  best.loss = law.loss(best.size, best.tokens);
  return best;
}

std::vector<size_t> runs_of(const std::vector<ScalingPoint>& points) {
  std::map<std::string, size_t> known;
  std::vector<size_t> runs;
  size_t count = 0;
  for (const auto& point : points) {
    const auto [at, is_new] = known.emplace(point.run, count);
    const bool is_own = point.run.empty() || is_new;
    runs.push_back(is_own ? count++ : at->second);
  }
  return runs;
}

ScalingFit fit_scaling_law(const std::vector<ScalingPoint>& points, const FitOptions& options) {
  require_enough(points);
  auto problem = problem_of(points);
  problem.delta = std::max(options.huber_delta, 1e-3);
  auto best = best_of_starts(problem);
  ScalingFit fit;
  fit.confidence = options.confidence;
  fit.objective = descend_to(problem, best, options.huber_delta) * options.huber_delta;
  fit.law = law_of(problem, best);
  const auto run_of = runs_of(points);
  const size_t count = std::ranges::max(run_of) + 1;
  for (int64_t b = 0; b < options.resamples; ++b) {
    auto stream = Rng(options.seed).stream("bootstrap", 0, static_cast<uint64_t>(b));
    std::vector<double> times(count);
    for (size_t r = 0; r < count; ++r) ++times[stream.below(count)];
    for (size_t i = 0; i < points.size(); ++i) problem.weight[i] = times[run_of[i]];
    auto v = best;
    descend_to(problem, v, options.huber_delta);
    fit.resampled.push_back(law_of(problem, v));
  }
  return fit;
}

std::vector<std::string> doubts(const ScalingFit& fit, const std::vector<ScalingPoint>& points) {
  std::vector<std::string> reasons;
  const auto& law = fit.law;
  const auto problem = problem_of(points);
  double least = std::numeric_limits<double>::infinity(), by_size = 0, by_tokens = 0;
  for (const auto& point : points) {
    least = std::min(least, point.loss);
    by_size = std::max(by_size, law.A * std::pow(point.size, -law.alpha));
    by_tokens = std::max(by_tokens, law.B * std::pow(point.tokens, -law.beta));
  }
  for (const auto& point : points)
    if (!point.changed.empty())
      reasons.push_back(
          concat(point.name, " was ", point.changed, ": its loss is not that of a run that never changed"));
  const double negligible = 1e-3 * least;
  if (law.E < negligible)
    reasons.push_back(concat("E is ", digits(law.E, 3),
                             ": the points show no floor of the loss; train longer and larger "
                             "models, or take E for unknown"));
  if (law.alpha <= 0 || by_size < negligible)
    reasons.push_back("the loss does not fall with the size: A / N^alpha explains nothing; spread the sizes wider");
  if (law.beta <= 0 || by_tokens < negligible)
    reasons.push_back("the loss does not fall with the tokens: B / D^beta explains nothing; spread the budgets wider");
  const double together = correlation(problem);
  if (std::abs(together) > 0.95)
    reasons.push_back(concat("sizes and tokens move together (correlation of their logarithms ", digits(together, 3),
                             "), which does not tell the two terms apart; train each size with several token counts"));
  if (!fit.resampled.empty())
    for (size_t k = 0; k < law_names.size(); ++k) {
      const auto interval = fit.interval([&](const ScalingLaw& one) { return values_of(one)[k]; });
      if (interval.high - interval.low > std::abs(values_of(law)[k]))
        reasons.push_back(concat(law_names[k], " is uncertain by more than its value: ", digits(interval.low, 3),
                                 " to ", digits(interval.high, 3), "; more points would narrow it"));
    }
  return reasons;
}

}  // namespace cloze
