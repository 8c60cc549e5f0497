#pragma once
// The objectives: a config has a list of them.
#include <variant>

#include "objectives/causal_lm.h"
#include "objectives/denoising.h"
#include "objectives/gap_sentences.h"
#include "objectives/masked_lm.h"
#include "objectives/permutation_lm.h"
#include "objectives/replaced_token.h"
#include "objectives/sentence_pair.h"
#include "objectives/span_boundary.h"
#include "objectives/span_corruption.h"
#include "objectives/parallel_text.h"

namespace cloze {

using ObjectiveConfig = std::variant<MlmConfig, NspConfig, SopConfig, RtdConfig, SboConfig, ClmConfig,
                                     SpanCorruptionConfig, DenoisingConfig, GapSentencesConfig, PairsConfig, PlmConfig>;
using Objectives = std::vector<ObjectiveConfig>;

/// The objective trains generation: all next-token objectives except plm, which predicts positions of the text itself.
template <class Kind>
inline constexpr bool is_generative_kind = std::is_base_of_v<NextTokenTerms, Kind> && !std::is_same_v<Kind, PlmConfig>;
inline bool is_generative(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return is_generative_kind<std::decay_t<decltype(o)>>; }, objective);
}

/// The name of an objective's head; next-token objectives share `lm`.
inline std::string head_of(const ObjectiveConfig& objective) {
  if (is_generative(objective) || std::holds_alternative<PlmConfig>(objective)) return "lm";
  return std::visit([](const auto& o) { return std::string(o.kind); }, objective);
}

/// The masking of the rows of these objectives, or null.
inline const MlmConfig* masking_of(const Objectives& objectives) {
  for (const auto& o : objectives) {
    if (const auto* mlm = std::get_if<MlmConfig>(&o)) return mlm;
    if (const auto* rtd = std::get_if<RtdConfig>(&o)) return &rtd->mlm;
  }
  return nullptr;
}

}  // namespace cloze
