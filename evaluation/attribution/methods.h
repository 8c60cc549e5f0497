#pragma once
// Methods that share the score of a row out among its words.
#include <optional>
#include <utility>

#include "evaluation/attribution/attribute.h"
#include "evaluation/attribution/row_scores.h"
#include "evaluation/attribution/row_words.h"

namespace cloze {

/// What is explained: a score, with the words of its row.
struct Explained {
  size_t item = 0;          ///< index
  std::string name{};       ///< of the item
  std::string part{};       ///< of its answer: `start`, `end`, the word that has a tag; empty: it has one
  std::string label{};      ///< whose score it is; empty: of a value
  std::string predicted{};  ///< for the item, or for the word
  std::string gold{};       ///< what is right; empty: it is not known
  std::vector<RowWord> words{};
};

/// The values of words.
struct Attribution {
  std::vector<double> values{};  ///< of each word
  double score = 0;              ///< of the text
  double baseline = 0;           ///< of the baseline in place of all words
  double probability = 0;        ///< of the text; of a score without one the score itself
  /// What a method promises: of integrated gradients and shap by how much the values miss the difference of the two
  /// scores, as a share of it; of lime R^2, weighted; none of others.
  std::optional<double> check{};
  int64_t points = 0;  ///< of integrated gradients, that were taken
};

/// A score whose words alone are kept where `present` says so.
RowVariant with_words(size_t score, const Explained& of, const TaskRow& row, const std::vector<bool>& present);

/// The attributions of all scores, `explained` and `in.scores` being in one order.
/// Throws ConfigError for integrated gradients that miss the difference by more than a hundredth, and for an attention
/// without a matrix of probabilities (rollout).
std::vector<Attribution> attributions_of(const ScoredRows& in, const std::vector<Explained>& explained,
                                         const AttributionOptions& options);

/// Points in (0, 1) and their weights, whose sum is 1, by which a polynomial of degree 2 n - 1 is integrated exactly:
/// the zeros of Legendre's polynomial, by Newton's method. Source: Abramowitz and Stegun 1964, 25.4.29.
std::vector<std::pair<double, double>> gauss_legendre(int64_t n);

/// Which of some words a drawn text has: 1 to all of them are gone, each number at even odds, all subsets of a size
/// alike.
std::vector<bool> drawn_words(size_t words, Stream& stream);

/// A linear model of scores [S] of texts with some words present [S][n], by the weights of the texts. Source: Ribeiro
/// et al. 2016, section 3.4 (arXiv 1602.04938), with what their program takes: ridge regression (alpha 1) with an
/// intercept, and of the cosine distance d to the text the weight exp(-d^2 / 25^2) ^ (1/2), d times 100.
struct LinearModel {
  std::vector<double> slopes{};
  double r_squared = 0;
};
LinearModel fitted_words(const std::vector<std::vector<bool>>& present, const std::vector<double>& scores);

/// Attention rollout, for a row of one text. A layer's attention is the mean over heads and the identity, half each.
/// Source: Abnar and Zuidema 2020, section 3 (arXiv 2005.00928). `reader`: the token that the head reads; -1: all.
/// Throws ConfigError for an attention without a matrix of probabilities, and for an encoder-decoder.
std::vector<double> rolled_out(Network& network, const LabelledSetting& setting, const TaskRow& row, int64_t reader);

}  // namespace cloze
