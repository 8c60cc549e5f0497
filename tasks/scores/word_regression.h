#pragma once
// A classifier that knows words and nothing of their order: what a network has to beat.
#include <memory>
#include <string>
#include <vector>

namespace cloze {

/// Logistic regression on the words of a text and its pairs of neighbouring words, present or not, of those that at
/// least two texts have. Words are runs of at least two word characters in lower case, as those of scikit-learn's
/// CountVectorizer (binary, min_df = 2). The weights of the smallest sum of cross entropies and half their squares
/// (C = 1, intercepts free), by L-BFGS; of two labels one vector of weights, of more one a label, as
/// LogisticRegression.
class WordRegression {
 public:
  /// labels  of each text, from 0 to `count` - 1
  /// Throws DataError for texts of fewer than two labels.
  WordRegression(const std::vector<std::string>& texts, const std::vector<int64_t>& labels, int64_t count);
  ~WordRegression();
  /// Probabilities of a text, by label.
  std::vector<double> probabilities(const std::string& text) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace cloze
