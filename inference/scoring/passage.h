#pragma once
// A text to score, and its score.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "core/error.h"

namespace cloze {

/// A text of which a span is scored. The three parts are joined as they are; a token that overlaps `scored` counts, and
/// so does one that is the space before it.
struct Passage {
  std::string left{};   ///< context before it
  std::string scored;   ///< may be the whole text
  std::string right{};  ///< context after it, which left-to-right models do not see
  std::string text() const { return left + scored + right; }
  bool operator==(const Passage&) const = default;
};

/// A passage that cannot be scored, of those that were given together.
struct PassageError : DataError {
  PassageError(size_t index, const std::string& message) : DataError(message), passage(index) {}
  size_t passage;
};

/// The log-probability of one token.
struct TokenScore {
  int64_t id = 0;
  size_t begin = 0, end = 0;   ///< bytes in the text of its passage
  double log_probability = 0;  ///< nats
  int64_t rank = 0;            ///< among the whole vocabulary, 1 = the most probable; 0: not asked for
  double best = 0;             ///< log-probability of the most probable token [nats], with the rank
  bool operator==(const TokenScore&) const = default;
};

/// The score of a passage; `tokens` is empty where its scored span has none.
struct PassageScore {
  double sum = 0;  ///< of the log-probabilities of `tokens` [nats]
  std::vector<TokenScore> tokens{};
  int64_t words = 0;  ///< of the scored span, separated by white space
  int64_t bytes = 0;  ///< of the scored span
  bool operator==(const PassageScore&) const = default;
};

/// What a sum is divided by.
enum class Normalisation { sum, token, word, byte };
constexpr auto choices(Normalisation) {
  return std::array{Choice{Normalisation::sum, "sum", "the log-probability of the whole"},
                    Choice{Normalisation::token, "token", "by the number of its tokens"},
                    Choice{Normalisation::word, "word", "by the number of its words"},
                    Choice{Normalisation::byte, "byte", "by the number of its bytes"}};
}

/// The score by which passages are compared. A passage without tokens, words or bytes: its sum.
inline double normalised(const PassageScore& score, Normalisation by) {
  int64_t parts = 1;
  switch (by) {
    case Normalisation::sum:
      break;
    case Normalisation::token:
      parts = static_cast<int64_t>(score.tokens.size());
      break;
    case Normalisation::word:
      parts = score.words;
      break;
    case Normalisation::byte:
      parts = score.bytes;
      break;
  }
  return score.sum / static_cast<double>(parts > 0 ? parts : 1);
}

}  // namespace cloze
