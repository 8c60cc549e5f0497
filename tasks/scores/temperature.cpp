#include "tasks/scores/temperature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cloze {

namespace {

constexpr double least_inverse = 0.05, most_inverse = 20;

/// Logarithms of probabilities: logits but for a constant. One of 0 is as small as can be.
std::vector<double> logits_of_probabilities(const std::vector<double>& probabilities) {
  std::vector<double> logits;
  for (const double p : probabilities) logits.push_back(std::log(std::max(p, std::numeric_limits<double>::min())));
  return logits;
}

std::vector<double> softmax(const std::vector<double>& logits, double factor) {
  const double most = *std::ranges::max_element(logits);
  std::vector<double> p;
  for (const double logit : logits) p.push_back(std::exp(factor * (logit - most)));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (auto& value : p) value /= sum;
  return p;
}

struct LabelledLogits {
  std::vector<double> logits{};
  size_t label = 0;
};

/// The first and the second derivative of the log loss by the inverse of the temperature: over all items the mean logit
/// less that of what is right, and the variance of the logits.
struct Derivatives {
  double first = 0, second = 0;
  Derivatives(const std::vector<LabelledLogits>& items, double inverse) {
    for (const auto& [logits, label] : items) {
      const auto p = softmax(logits, inverse);
      const double mean = std::inner_product(p.begin(), p.end(), logits.begin(), 0.0);
      first += mean - logits[label];
      for (size_t k = 0; k < p.size(); ++k) second += p[k] * (logits[k] - mean) * (logits[k] - mean);
    }
  }
};

}  // namespace

std::vector<double> at_temperature(const std::vector<double>& probabilities, double temperature) {
  return softmax(logits_of_probabilities(probabilities), 1 / temperature);
}

double fitted_temperature(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions) {
  std::vector<LabelledLogits> known;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto label = items[i].gold.label;
    if (label < 0 || label >= std::ssize(predictions[i].probabilities)) continue;
    known.push_back({logits_of_probabilities(predictions[i].probabilities), static_cast<size_t>(label)});
  }
  if (known.empty()) return 1;
  double low = least_inverse, high = most_inverse, inverse = 1;
  if (Derivatives(known, low).first >= 0) return 1 / low;
  if (Derivatives(known, high).first <= 0) return 1 / high;
  for (int step = 0; step < 100 && high - low > 1e-14 * high; ++step) {
    const Derivatives at(known, inverse);
    (at.first > 0 ? high : low) = inverse;
    const double next = at.second > 0 ? inverse - at.first / at.second : low;
    const double before = inverse;
    inverse = next > low && next < high ? next : (low + high) / 2;  // by halves where Newton's step leaves the bracket
    if (inverse == before) break;
  }
  return 1 / inverse;
}

}  // namespace cloze
