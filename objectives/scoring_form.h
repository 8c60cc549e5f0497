#pragma once
// The forms of a score, without LibTorch.
#include <array>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// How the probability of a text is made of the probabilities of its tokens.
enum class ScoringForm { pll, pll_word_l2r, pll_span, likelihood, detection };
constexpr auto choices(ScoringForm) {
  return std::array{
      Choice{ScoringForm::pll, "pll", "pseudo-log-likelihood: one token masked at a time (Salazar et al. 2020)"},
      Choice{ScoringForm::pll_word_l2r, "pll-word-l2r",
             "the same with the later tokens of its word masked too (Kauf and Ivanova 2023)"},
      Choice{ScoringForm::pll_span, "pll-span",
             "all scored tokens masked together: the completion of a gap (Kassner et al. 2021)"},
      Choice{ScoringForm::likelihood, "likelihood", "each token given those before it, left to right"},
      Choice{ScoringForm::detection, "detection", "each token judged original by the discriminator of rtd"}};
}

/// The forms of what fills masks.
inline std::vector<ScoringForm> masked_forms() {
  return {ScoringForm::pll, ScoringForm::pll_word_l2r, ScoringForm::pll_span};
}

}  // namespace cloze
