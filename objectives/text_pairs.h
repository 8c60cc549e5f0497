#pragma once
// Pairs of texts: translation, summaries, questions with answers.
#include "objectives/terms.h"

namespace cloze {

/// Pairs of texts: the decoder writes the second of each.
/// Source: Sutskever et al. 2014, section 2 (arXiv 1409.3215).
struct PairsConfig : NextTokenTerms {
  static constexpr const char* kind = "pairs";
};
template <class V>
void describe(V& v, PairsConfig& c) {
  describe_next_token(v, c);
}

}  // namespace cloze
