#include "tasks/scores/word_regression.h"

#include <lbfgs.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"
#include "tasks/scores/squad_score.h"

namespace cloze {

namespace {

/// Words of at least two characters, and pairs of neighbours, which a space joins.
std::vector<std::string> word_features(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  size_t length = 0;
  const auto end_word = [&] {
    if (length >= 2) words.push_back(word);
    word.clear();
    length = 0;
  };
  const auto lowered = python_lower(text);
  for (size_t at = 0; at < lowered.size();) {
    const auto c = next_code_point(lowered, at);
    if (c < 0 || !is_python_word(c)) {
      end_word();
      continue;
    }
    append_code_point(word, c);
    ++length;
  }
  end_word();
  auto features = words;
  for (size_t i = 1; i < words.size(); ++i) features.push_back(words[i - 1] + " " + words[i]);
  std::ranges::sort(features);
  features.erase(std::ranges::unique(features).begin(), features.end());
  return features;
}

using Vocabulary = std::unordered_map<std::string, uint32_t>;

std::vector<uint32_t> known_features(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<uint32_t> features;
  for (const auto& feature : word_features(text))
    if (const auto at = vocabulary.find(feature); at != vocabulary.end()) features.push_back(at->second);
  return features;
}

/// The features of at least two texts.
Vocabulary vocabulary_of(const std::vector<std::string>& texts) {
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& text : texts)
    for (auto& feature : word_features(text)) ++counts[std::move(feature)];
  std::vector<std::string> kept;
  for (const auto& [feature, count] : counts)
    if (count >= 2) kept.push_back(feature);
  std::ranges::sort(kept);
  Vocabulary vocabulary;
  for (const auto& feature : kept) vocabulary.emplace(feature, static_cast<uint32_t>(vocabulary.size()));
  return vocabulary;
}

/// What is minimised: weights [features + 1, outputs], of which the last row are the intercepts.
struct WordProblem {
  std::vector<std::vector<uint32_t>> rows{};
  std::vector<int64_t> labels{};
  size_t features = 0, outputs = 0;

  void scores(const std::vector<uint32_t>& row, const double* weights, std::vector<double>& logits) const {
    const double* intercepts = weights + features * outputs;
    logits.assign(intercepts, intercepts + outputs);
    for (const auto feature : row)
      for (size_t k = 0; k < outputs; ++k) logits[k] += weights[feature * outputs + k];
  }

  /// Turns scores into probabilities, one of the second label for one output; returns the log of their sum.
  static double normalise(std::vector<double>& scores) {
    const double largest = scores.size() == 1 ? std::max(0.0, scores[0]) : *std::ranges::max_element(scores);
    double sum = scores.size() == 1 ? std::exp(-largest) : 0;
    for (auto& score : scores) sum += score = std::exp(score - largest);
    for (auto& score : scores) score /= sum;
    return largest + std::log(sum);
  }

  double evaluate(const double* weights, double* gradient) const {
    const auto all = (features + 1) * outputs;
    double loss = 0;
    for (size_t i = 0; i < all; ++i) {
      gradient[i] = i < features * outputs ? weights[i] : 0;
      loss += 0.5 * weights[i] * gradient[i];
    }
    std::vector<double> p;
    for (size_t i = 0; i < rows.size(); ++i) {
      scores(rows[i], weights, p);
      const auto label = static_cast<size_t>(labels[i]);
      const bool has_own = outputs > 1 || label == 1;  // the label has a score of its own, else that is 0
      const size_t own = outputs > 1 ? label : 0;
      const double score = has_own ? p[own] : 0;
      loss += normalise(p) - score;
      if (has_own) p[own] -= 1;
      for (const auto feature : rows[i])
        for (size_t k = 0; k < outputs; ++k) gradient[feature * outputs + k] += p[k];
      for (size_t k = 0; k < outputs; ++k) gradient[features * outputs + k] += p[k];
    }
    return loss;
  }
};

lbfgsfloatval_t evaluate_words(void* problem, const lbfgsfloatval_t* x, lbfgsfloatval_t* gradient, int,
                               lbfgsfloatval_t) {
  return static_cast<const WordProblem*>(problem)->evaluate(x, gradient);
}

std::vector<double> minimised(WordProblem& problem) {
  std::vector<double> weights((problem.features + 1) * problem.outputs);
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.m = 10;
  parameters.epsilon = 1e-4;
  parameters.max_iterations = 1000;
  // Where the line search can gain nothing more it reports an error and leaves the best point.
  lbfgs(static_cast<int>(weights.size()), weights.data(), nullptr, evaluate_words, nullptr, &problem, &parameters);
  return weights;
}

}  // namespace

struct WordRegression::Impl {
  Vocabulary vocabulary{};
  WordProblem problem{};
  std::vector<double> weights{};
};

WordRegression::WordRegression(const std::vector<std::string>& texts, const std::vector<int64_t>& labels,
                               int64_t count) {
  require<DataError>(std::set<int64_t>(labels.begin(), labels.end()).size() >= 2,
                     "a regression on words learns from texts of two labels at least, and the training part has fewer");
  auto made = std::make_unique<Impl>();
  made->vocabulary = vocabulary_of(texts);
  auto& problem = made->problem;
  for (const auto& text : texts) problem.rows.push_back(known_features(made->vocabulary, text));
  problem.labels = labels;
  problem.features = made->vocabulary.size();
  problem.outputs = count == 2 ? 1 : static_cast<size_t>(count);
  made->weights = minimised(problem);
  problem.rows.clear();
  impl_ = std::move(made);
}

WordRegression::~WordRegression() = default;

std::vector<double> WordRegression::probabilities(const std::string& text) const {
  std::vector<double> p;
  impl_->problem.scores(known_features(impl_->vocabulary, text), impl_->weights.data(), p);
  WordProblem::normalise(p);
  if (p.size() == 1) p.insert(p.begin(), 1 - p[0]);
  return p;
}

}  // namespace cloze
