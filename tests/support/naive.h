#pragma once
// Formulas as loops in double, straight from the papers: the oracle of the fast paths.
#include <algorithm>
#include <cmath>
#include <vector>

namespace naive {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

/// Ba et al. 2016, equation 4, with the affine part.
inline Row layer_norm(const Row& x, const Row& gamma, const Row& beta, double eps) {
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / double(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / double(x.size());
  Row out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - mean) / std::sqrt(variance + eps) * gamma[i] + beta[i]);
  return out;
}

/// Zhang and Sennrich 2019, equation 4.
inline Row rms_norm(const Row& x, const Row& gamma, double eps) {
  double squares = 0;
  for (const double v : x) squares += v * v / double(x.size());
  Row out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(x[i] / std::sqrt(squares + eps) * gamma[i]);
  return out;
}

/// Hendrycks and Gimpel 2016, section 2.
inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/// Vaswani et al. 2017, equation 1, of one head; `visible[t][s]`: query t attends to key s. A query without keys gives
/// zeros.
inline Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v,
                        const std::vector<std::vector<bool>>& visible, const Matrix& factors) {
  Matrix out(q.size(), Row(v[0].size()));
  for (size_t t = 0; t < q.size(); ++t) {
    Row e(k.size());
    double total = 0;
    for (size_t s = 0; s < k.size(); ++s) {
      double score = 0;
      for (size_t c = 0; c < q[t].size(); ++c) score += q[t][c] * k[s][c];
      e[s] = visible[t][s] ? std::exp(score / std::sqrt(double(q[t].size()))) : 0;
      total += e[s];
    }
    for (size_t s = 0; s < k.size() && total > 0; ++s)
      for (size_t c = 0; c < v[s].size(); ++c) out[t][c] += e[s] / total * factors[t][s] * v[s][c];
  }
  return out;
}

/// Choromanski et al. 2021, equations 4 and 9, of one head, with w [R, C]; `real[s]`: key s is not padding.
/// Features are stabilised by the maximum score of the query and of the keys it attends to; epsilon is added after
/// that.
inline Matrix favor(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& w, const std::vector<bool>& real,
                    bool causal, bool relu, double epsilon) {
  const double scale = std::pow(double(q[0].size()), -0.25);
  const auto scores = [&](const Row& x) {
    Row out;
    for (const auto& row : w) {
      out.push_back(0);
      for (size_t c = 0; c < x.size(); ++c) out.back() += row[c] * x[c] * scale;
    }
    return out;
  };
  const auto top = [](const Row& x) { return *std::max_element(x.begin(), x.end()); };
  const auto features = [&](const Row& x, double off) {
    double squares = 0;
    for (const double c : x) squares += c * c * scale * scale;
    auto out = scores(x);
    for (auto& s : out) s = (relu ? std::max(s, 0.0) : std::exp(s - squares / 2 - off)) + epsilon;
    return out;
  };
  Matrix out(q.size(), Row(v[0].size()));
  for (size_t t = 0; t < q.size(); ++t) {
    const size_t end = causal ? t + 1 : k.size();
    double peak = -1e300, total = 0;
    for (size_t s = 0; s < end; ++s)
      if (real[s]) peak = std::max(peak, top(scores(k[s])));
    const auto mine = features(q[t], top(scores(q[t])));
    for (size_t s = 0; s < end; ++s) {
      if (!real[s]) continue;
      const auto other = features(k[s], peak);
      double product = 0;
      for (size_t r = 0; r < mine.size(); ++r) product += mine[r] * other[r];
      total += product;
      for (size_t c = 0; c < v[s].size(); ++c) out[t][c] += product * v[s][c];
    }
    for (auto& x : out[t]) x = total > 0 ? x / total : 0;
  }
  return out;
}

/// -log softmax(x)[label].
inline double cross_entropy(const Row& x, size_t label) {
  double total = 0;
  for (const double v : x) total += std::exp(v);
  return std::log(total) - x[label];
}

}  // namespace naive
