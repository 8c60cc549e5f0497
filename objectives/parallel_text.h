#pragma once
// Pairs of source and target texts: translation, summaries, questions with answers.
#include "core/limits.h"
#include "objectives/terms.h"

namespace cloze {

/// Supervised sequence-to-sequence training on pairs of texts: the decoder generates the second of each.
/// Source: Sutskever et al. 2014, section 2 (arXiv 1409.3215).
struct PairsConfig : NextTokenTerms {
  static constexpr const char* kind = "pairs";
  static constexpr bool reads_text_pairs = true;
};
template <class V>
void describe(V& v, PairsConfig& c) {
  describe_next_token(v, c);
}

void check_limits(const PairsConfig& objective, const ObjectiveSetting& in, Limits& limits);
void expect_rows(const PairsConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
std::string prediction_words(const PairsConfig& objective);

}  // namespace cloze
