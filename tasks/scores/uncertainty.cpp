#include "tasks/scores/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text.h"
#include "tasks/scores/temperature.h"

namespace cloze {

namespace {

double entropy_of(const std::vector<double>& probabilities) {
  double sum = 0;
  for (const double p : probabilities)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

/// The mean of probabilities of one label, or of each of several.
std::vector<double> mean_probabilities(std::span<const ItemPrediction> passes) {
  std::vector<double> mean(passes[0].prediction.probabilities.size());
  for (const auto& pass : passes)
    for (size_t label = 0; label < mean.size(); ++label)
      mean[label] += pass.prediction.probabilities[label] / static_cast<double>(passes.size());
  return mean;
}

double mean_value(std::span<const ItemPrediction> passes) {
  double sum = 0;
  for (const auto& pass : passes) sum += pass.prediction.answer.value;
  return sum / static_cast<double>(passes.size());
}

double deviation_of(std::span<const ItemPrediction> passes, double mean) {
  double sum = 0;
  for (const auto& pass : passes) sum += std::pow(pass.prediction.answer.value - mean, 2);
  return std::sqrt(sum / static_cast<double>(passes.size() - 1));
}

/// Of the label and the pass: the entropy of the mean less the mean entropy.
double mutual_information_of(std::span<const ItemPrediction> passes, const std::vector<double>& mean) {
  double inside = 0;
  for (const auto& pass : passes) inside += entropy_of(pass.prediction.probabilities);
  return std::max(0.0, entropy_of(mean) - inside / static_cast<double>(passes.size()));
}

/// The labels above a half.
std::vector<int64_t> likely_labels(const std::vector<double>& probabilities) {
  std::vector<int64_t> labels;
  for (size_t label = 0; label < probabilities.size(); ++label)
    if (probabilities[label] > 0.5) labels.push_back(static_cast<int64_t>(label));
  return labels;
}

}  // namespace

std::string no_mean_of(AnyTaskKind kind) {
  if (kind->form == AnswerForm::label || kind->form == AnswerForm::value || kind->has_sets) return "";
  return concat("a task of ", kind, " has no mean of several predictions");
}

MeanPrediction mean_prediction(AnyTaskKind kind, std::span<const ItemPrediction> passes, double temperature) {
  MeanPrediction made{.item = passes[0]};
  made.item.loss = std::nan("");
  made.item.count = 0;
  auto& prediction = made.item.prediction;
  if (kind->form == AnswerForm::value) {
    prediction.answer.value = mean_value(passes);
    if (passes.size() > 1) made.uncertainty.deviation = deviation_of(passes, prediction.answer.value);
    return made;
  }
  const auto mean = mean_probabilities(passes);
  prediction.probabilities = mean;
  if (kind->has_sets) {
    prediction.answer.labels = likely_labels(mean);
    return made;
  }
  prediction.answer.label = std::ranges::max_element(mean) - mean.begin();
  if (passes.size() > 1) made.uncertainty.mutual_information = mutual_information_of(passes, mean);
  if (temperature != 1) prediction.probabilities = at_temperature(mean, temperature);
  made.uncertainty.entropy = entropy_of(prediction.probabilities);
  return made;
}

ConformalSets::ConformalSets(double coverage, const std::vector<TaskItem>& items,
                             const std::vector<TaskPrediction>& predictions) {
  std::vector<double> right;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto label = items[i].gold.label;
    const auto& p = predictions[i].probabilities;
    right.push_back(label >= 0 && label < std::ssize(p) ? p[static_cast<size_t>(label)] : 0);
  }
  std::ranges::sort(right);
  // So many of n + 1 items, of which the next one is one, may be left out.
  const auto left_out = std::floor((1 - coverage) * static_cast<double>(right.size() + 1) + 1e-9);
  require<ConfigError>(left_out >= 1, "sets that hold what is right in ", coverage, " of cases need at least ",
                       std::ceil(1 / (1 - coverage) - 1 - 1e-9), " items of the valid part, which has ", right.size(),
                       "; ask for less");
  least_ = right[static_cast<size_t>(left_out) - 1];
}

std::vector<int64_t> ConformalSets::labels_of(const std::vector<double>& probabilities) const {
  std::vector<int64_t> labels(probabilities.size());
  std::iota(labels.begin(), labels.end(), int64_t{0});
  std::ranges::stable_sort(labels, std::ranges::greater{},
                           [&](int64_t label) { return probabilities[static_cast<size_t>(label)]; });
  const auto is_in = [&](int64_t label) { return probabilities[static_cast<size_t>(label)] >= least_; };
  labels.erase(std::ranges::find_if_not(labels, is_in), labels.end());
  return labels;
}

}  // namespace cloze
