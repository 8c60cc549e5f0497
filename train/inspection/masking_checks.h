#pragma once
// Counts over masked rows, and tests of these counts against the rules of the masking.
#include "objectives/masking.h"
#include "train/inspection/row_inspector.h"

namespace cloze {

/// Counts over the rows of one masking.
struct MaskingCounts {
  int64_t sequences = 0, tokens = 0, candidates = 0, predicted = 0, special_predicted = 0, unknown = 0, empty = 0;
  int64_t masked = 0, random = 0, kept = 0;                        // draws
  int64_t wrong_counts = 0, split_words = 0, more_than_drawn = 0;  // violations of strict rules
  double expected = 0, variance = 0;  // of the predicted tokens, if they are drawn at random
  double wanted = 0;                  // tokens, if their number is a rule
};
MaskingCounts& operator+=(MaskingCounts& all, const MaskingCounts& c);

nlohmann::json masking_facts(const MaskingCounts& counts);
nlohmann::json mask_split_of(const MaskingCounts& counts);

/// A masked row.
struct MaskedRow {
  const std::vector<int64_t>& ids;      ///< input ids; -1 = a predicted token outside the input
  const std::vector<int64_t>& labels;   ///< the original ids of predicted tokens, else -100
  const std::vector<int64_t>& lengths;  ///< of n-grams and spans, as drawn
  bool masks_unknown = false;           ///< the unknown token may be chosen, although it is special
};
/// Adds a row to the counts, and returns its number of predictions. `masking`: the rules, with the share of this row as
/// mlm_probability; null: none.
int64_t count_row(MaskingCounts& counts, LengthCounts& lengths, const MaskedRow& row, const Masking* masking,
                  const TokenProperties& vocabulary);

/// Tests the counts of one masking against its rules.
void test_masking(const Masking& masking, const MaskingCounts& counts, LengthCounts& lengths,
                  const TokenProperties& vocabulary, Inspection& inspection);

/// P(n) [n], n = 1 ... max, proportional to 1 / n. Source: Lan et al. 2020, section 4.1; Yang et al. 2019, section 2.3.
std::vector<double> ngram_lengths(int64_t max);
/// Tests drawn lengths against their probabilities. The number of draws depends on the lengths drawn so far, but never
/// on the next one: counts minus expectations are a martingale with the variance of as many independent draws.
void fit_lengths(LengthCounts& lengths, std::vector<double> probabilities, const std::string& name,
                 Inspection& inspection);

inline constexpr const char* wrong_number_of_predictions = "sequences with a wrong number of predictions";

}  // namespace cloze
