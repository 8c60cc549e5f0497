#pragma once
// What a run predicts for the tokens of a text, one by one, and its losses by position and by frequency, and
// whether it is as often right as it is confident.
#include <span>
#include <string>
#include <vector>

#include "inference/scoring/scorer.h"
#include "run/run.h"

namespace cloze {

/// The prediction of one token of a text.
struct SeenToken {
  int64_t id = 0;
  int64_t position = 0;   ///< in its text, from 0
  double loss = 0;        ///< -log-probability [nats]
  double confidence = 0;  ///< probability of the most probable token
  bool right = false;     ///< which is this one
  bool operator==(const SeenToken&) const = default;
};

/// The predictions of all tokens of texts, in order. Throws as Scorer::score.
std::vector<SeenToken> predict_tokens(const LoadedRun& run, std::span<const std::string> texts, ScoringOptions options);

/// A text token by token.
struct TextLosses {
  std::vector<std::string> pieces{};
  std::vector<double> losses{};  ///< of each [nats]
};

/// The first `most` texts of these tokens; those without a token that is predicted are left out.
std::vector<TextLosses> losses_of_texts(const Tokenizer& tokenizer, const std::vector<SeenToken>& tokens, size_t most);

/// Tokens of one kind.
struct TokenGroup {
  std::string name;
  int64_t count = 0;
  double loss = 0;      ///< mean [nats]
  double accuracy = 0;  ///< share whose most probable token is right
  bool operator==(const TokenGroup&) const = default;
};

/// By position in the text: 0, 1, 2 to 3, 4 to 7, 8 to 15, ...
std::vector<TokenGroup> by_position(const std::vector<SeenToken>& tokens);

/// By the number of times that a token occurs in the training text: never, once, 2 to 9, 10 to 99, ... `counts`: of
/// each id; empty: the numbers in these texts.
std::vector<TokenGroup> by_frequency(const std::vector<SeenToken>& tokens, std::span<const uint64_t> counts = {});

/// Predictions of about the same confidence.
struct CalibrationBin {
  double low = 0, high = 1;  ///< of the confidence
  int64_t count = 0;
  double confidence = 0;  ///< mean
  double accuracy = 0;
};

struct Calibration {
  std::vector<CalibrationBin> bins{};  ///< those with predictions
  double error = 0;                    ///< expected calibration error
  int64_t count = 0;
};

/// ECE = sum over bins of count / n |accuracy - confidence|, with `bins` bins of equal width over (0, 1]. Source: Guo
/// et al. 2017, section 2, equation 3 (arXiv 1706.04599).
Calibration calibration_of(const std::vector<SeenToken>& tokens, int64_t bins = 15);

}  // namespace cloze
