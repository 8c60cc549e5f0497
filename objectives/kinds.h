#pragma once
// The objectives: each of a config's list is one of them. Only files that name an objective include this one; others
// know ObjectiveConfig (config.h).
#include <variant>

#include "objectives/config.h"
#include "objectives/causal_lm.h"
#include "objectives/denoising.h"
#include "objectives/gap_sentences.h"
#include "objectives/masked_lm.h"
#include "objectives/mntp.h"
#include "objectives/parallel_text.h"
#include "objectives/permutation_lm.h"
#include "objectives/replaced_token.h"
#include "objectives/sentence_pair.h"
#include "objectives/span_boundary.h"
#include "objectives/span_corruption.h"

namespace cloze {

struct ObjectiveKind
    : std::variant<MlmConfig, NspConfig, SopConfig, RtdConfig, SboConfig, ClmConfig, SpanCorruptionConfig,
                   DenoisingConfig, GapSentencesConfig, PairsConfig, PlmConfig, MntpConfig> {
  using variant::variant;
};

/// The objective trains generation: its rows are sources and targets.
template <class Kind>
inline constexpr bool is_generative_kind = Kind::rows == RowKind::generative;

}  // namespace cloze
