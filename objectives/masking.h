#pragma once
// Which tokens are predicted and what stands in their place. Source: the rules that `MlmConfig::like` names.
#include <vector>

#include "core/random.h"
#include "data/tokenizer.h"
#include "objectives/config.h"

namespace cloze {

/// Facts about the vocabulary, looked up once for each token.
struct Vocabulary {
  explicit Vocabulary(const Tokenizer& tokenizer);
  int64_t size;
  SpecialIds special;
  std::vector<uint8_t> is_special, starts_word;   // [size]
};

/// Chooses and corrupts the tokens of rows. Holds scratch space: one for each thread.
class Masker {
 public:
  Masker(const MlmConfig& config, const Vocabulary& vocabulary);
  /// Corrupts ids[0, length) in place and appends the chosen places, ascending, plus `offset`, and their tokens.
  void corrupt(int64_t* ids, int64_t length, int64_t offset, Stream stream, std::vector<int64_t>& positions,
               std::vector<int64_t>& labels);

 private:
  struct Unit {
    uint32_t first, count;
  };
  void find_units(const int64_t* ids, int64_t length);
  void choose(int64_t length, Stream& stream);
  int64_t random_token(Stream& stream) const;

  const MlmConfig& config_;
  const Vocabulary& vocabulary_;
  std::vector<Unit> units_;        // what may be chosen: tokens or words
  std::vector<uint8_t> chosen_;    // [length]
};

}  // namespace cloze
