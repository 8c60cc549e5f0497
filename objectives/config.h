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

/// `mlm`, `nsp`, ...
inline std::string kind_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return std::string(o.kind); }, objective);
}
inline const ObjectiveTerms& terms_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) -> const ObjectiveTerms& { return o; }, objective);
}
inline RowKind rows_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.rows; }, objective);
}

inline bool classifies_pairs(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.classifies_pairs; }, objective);
}

/// False for objectives that classify, whose baseline is the majority of the labels.
inline bool predicts_tokens(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.predicts_tokens; }, objective);
}

inline bool fills_masks(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.fills_masks; }, objective);
}

inline bool reads_text_pairs(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.reads_text_pairs; }, objective);
}

/// What stands for a blank in the source; none for objectives without a source.
inline Placeholder blank_of(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.blank(); }) return o.blank();
        return Placeholder::none;
      },
      objective);
}

inline bool continues_source(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.continues_source(); }) return o.continues_source();
        return false;
      },
      objective);
}

/// The first objective of type `Kind`, or null.
template <class Kind>
const Kind* first_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto* found = std::get_if<Kind>(&objective)) return found;
  return nullptr;
}

/// The first objective whose rows the others share: one that makes rows of its own, else any; null: there is none.
inline const ObjectiveConfig* row_objective_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (rows_of(objective) != RowKind::masked) return &objective;
  return objectives.empty() ? nullptr : &objectives.front();
}

/// Hidden states predict the token after their own position, in masked rows too.
inline bool predicts_shifted(const Objectives& objectives) {
  const auto* found = row_objective_of(objectives);
  return found && rows_of(*found) == RowKind::shifted;
}

/// The objective trains generation: its rows are sources and targets.
template <class Kind>
inline constexpr bool is_generative_kind = Kind::rows == RowKind::generative;
inline bool is_generative(const ObjectiveConfig& objective) { return rows_of(objective) == RowKind::generative; }
/// The generative objective, or null.
inline const ObjectiveConfig* generative_of(const Objectives& objectives) {
  const auto* found = row_objective_of(objectives);
  return found && is_generative(*found) ? found : nullptr;
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

/// The number of versions of each sequence under static masking: that of the first objective that masks; 0: dynamic
/// masking, or none.
inline int64_t dupe_factor_of(const Objectives& objectives) {
  int64_t found = 0;
  for (const auto& objective : objectives)
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { dupe_factor_of(o); })
            if (found == 0) found = dupe_factor_of(o);
        },
        objective);
  return found;
}

}  // namespace cloze
