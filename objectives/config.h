#pragma once
// The objectives: a config has a list of them.
#include <variant>

#include "objectives/causal_lm.h"
#include "objectives/denoising.h"
#include "objectives/gap_sentences.h"
#include "objectives/masked_lm.h"
#include "objectives/mntp.h"
#include "objectives/permutation_lm.h"
#include "objectives/replaced_token.h"
#include "objectives/sentence_pair.h"
#include "objectives/span_boundary.h"
#include "objectives/span_corruption.h"
#include "objectives/parallel_text.h"

namespace cloze {

using ObjectiveConfig =
    std::variant<MlmConfig, NspConfig, SopConfig, RtdConfig, SboConfig, ClmConfig, SpanCorruptionConfig,
                 DenoisingConfig, GapSentencesConfig, PairsConfig, PlmConfig, MntpConfig>;
using Objectives = std::vector<ObjectiveConfig>;

/// The objective trains generation: all next-token objectives except plm and mntp, which predict positions of the text
/// itself.
template <class Kind>
inline constexpr bool is_generative_kind =
    std::is_base_of_v<NextTokenTerms, Kind> && !std::is_same_v<Kind, PlmConfig> && !std::is_same_v<Kind, MntpConfig>;
inline bool is_generative(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return is_generative_kind<std::decay_t<decltype(o)>>; }, objective);
}

/// The name of an objective's head; next-token objectives share `lm`.
inline std::string head_of(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        return std::string(std::is_base_of_v<NextTokenTerms, std::decay_t<decltype(o)>> ? "lm" : o.kind);
      },
      objective);
}

/// The LM head has a dense layer, an activation and a norm before the output embedding.
inline bool has_transform(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.transform; }) return o.transform;
        return false;
      },
      objective);
}

/// The maskings of which each row draws one: those of the first objective that masks; empty: no masking.
inline std::vector<MaskingPart> maskings_of(const Objectives& objectives) {
  std::vector<MaskingPart> found;
  for (const auto& objective : objectives)
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { maskings_of(o); })
            if (found.empty()) found = maskings_of(o);
        },
        objective);
  return found;
}

}  // namespace cloze
