#pragma once
// Numbers that a network says of rows, and of rows of which words are replaced by a baseline, wholly or in part.
#include <string>
#include <vector>

#include "finetune/run_rows.h"

namespace cloze {

/// Which logits the probability of one is among: none have one, those of the other labels, of itself alone, or of the
/// same column at all tokens.
enum class ProbabilityAmong { none, labels, itself, tokens };

/// A logit of a row that is explained.
struct RowScore {
  size_t row = 0;
  int64_t token = -1;  ///< position of the logits, of a row with a target in that; -1: those of the row
  int64_t column = 0;
  ProbabilityAmong among = ProbabilityAmong::none;
};

/// The row of a score, each of whose token embeddings x is `kept` x + (1 - kept) b, b that of the baseline.
struct RowVariant {
  size_t score = 0;           ///< index
  std::vector<float> kept{};  ///< [T]
};

/// What is asked of the gradient g of a score by the embedding of each token: nothing, |g|, g x or g (x - b).
enum class TokenGradient { none, length, by_input, by_difference };

/// What a network says of a variant.
struct VariantScore {
  double score = 0;
  double probability = 0;           ///< of one without a probability the score itself; not with gradients
  std::vector<double> gradients{};  ///< [T]; empty: none were asked for
};

/// A network and what it is asked of.
struct ScoredRows {
  Network& network;  ///< whose parameters are frozen
  const Objectives& objectives;
  const std::vector<TaskRow>& rows;
  const std::vector<RowScore>& scores;
  int64_t baseline;  ///< id
};

/// Throws ConfigError for a network of which no gradients by embeddings can be taken: probes of layers, and an
/// encoder-decoder whose tables differ.
void require_embeddings(const Network& network);

/// Scores of variants, in their order. Rows of one length are computed together, each batch by one thread of the CPU.
/// Throws Interrupted after a signal to a program that saves.
std::vector<VariantScore> score_variants(const ScoredRows& in, const std::vector<RowVariant>& variants,
                                         TokenGradient gradient = TokenGradient::none);

}  // namespace cloze
