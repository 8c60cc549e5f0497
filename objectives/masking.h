#pragma once
// Chooses and replaces the tokens of masked language modelling. Source: the implementations that `Masking::like` names.
#include <span>
#include <vector>

#include "core/random.h"
#include "data/tokenizer.h"
#include "data/word_starts.h"
#include "objectives/config.h"

namespace cloze {

/// Properties of every vocabulary entry, as lookup tables.
struct TokenProperties {
  /// `counts` [size]: how often each id occurs in the training text, or empty.
  explicit TokenProperties(const Tokenizer& tokenizer, const std::vector<uint64_t>& counts = {});
  int64_t size;
  SpecialIds special;
  WordStarts words;
  std::vector<uint8_t> is_special;          // [size]
  std::vector<uint64_t> cumulative_counts;  // [size]; empty without counts
};

/// P(n), n = 1, 2, ..., up to a factor, of the lengths of n-grams and spans; empty: the unit has no lengths.
std::vector<double> length_weights(const Masking& config);

/// The index of the masking that a row draws.
size_t draw_masking(const std::vector<MaskingPart>& maskings, Stream stream);

/// Chooses and corrupts the tokens of rows. Has scratch buffers: one instance per thread.
class Masker {
 public:
  Masker(const Masking& config, const TokenProperties& vocabulary);
  /// Sets the share of predicted tokens for the rows that follow; initially mlm_probability.
  void set_rate(double rate) { rate_ = rate; }
  /// Corrupts ids[0, length) in place, and appends the chosen indices, ascending, plus `offset`, and their original
  /// ids. `drawn` receives the length of each n-gram or span in words as drawn, before truncation by the budget, the
  /// end of the row or a neighbour.
  void corrupt(int64_t* ids, int64_t length, int64_t offset, Stream stream, std::vector<int64_t>& positions,
               std::vector<int64_t>& labels, std::vector<int64_t>* drawn = nullptr);

 private:
  struct Unit {
    uint32_t first, count;
  };
  void find_units(std::span<const int64_t> ids, Stream& stream, std::vector<int64_t>* drawn);
  void choose(int64_t length, Stream& stream, std::vector<int64_t>* drawn);
  /// The number of tokens to choose in a row of `length`.
  int64_t wanted_tokens(int64_t length, Stream& stream) const;
  void choose_independently(Stream& stream);
  void cut_long_unit(int64_t budget, int64_t left, Stream& stream);
  void choose_units(int64_t wanted, Stream& stream);
  void choose_token_spans(int64_t wanted, Stream& stream);
  void choose_ngrams(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn);
  void choose_spans(int64_t wanted, Stream& stream, std::vector<int64_t>* drawn);
  int64_t draw_length(Stream& stream, std::vector<int64_t>* drawn) const;
  int64_t random_token(Stream& stream) const;
  /// Token i, chosen, becomes what the chosen token before it becomes: mask, random or kept.
  bool shares_draw(std::span<const int64_t> ids, int64_t i) const;

  const Masking& config_;
  double rate_;
  const TokenProperties& vocabulary_;
  std::vector<Unit> units_;      // candidates: tokens or words
  std::vector<uint8_t> chosen_;  // [length]
  std::vector<uint8_t> begins_;  // [length], true = first token of a unit
  std::vector<uint32_t> order_, unit_of_;
  std::vector<double> lengths_;  // cumulative probabilities of 1, 2, ... words
};

}  // namespace cloze
