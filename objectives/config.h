#pragma once
// A config's objectives: a list of kinds, and what is asked of all of them together.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "objectives/kind.h"

namespace cloze {

// The kinds and their parts, for declarations; a file that asks one for its options includes its header.
struct ChoiceConfig;
struct ClassificationConfig;
struct ClmConfig;
struct DenoisingConfig;
struct GapSentencesConfig;
struct MlmConfig;
struct MntpConfig;
struct MultilabelConfig;
struct NspConfig;
struct PairsConfig;
struct PlmConfig;
struct RegressionConfig;
struct RtdConfig;
struct SboConfig;
struct SopConfig;
struct SpanCorruptionConfig;
struct SpansConfig;
struct TaggingConfig;
struct Masking;

/// Those of BERT: mlm and nsp.
Objectives default_objectives();

/// The objective of type `Kind` with its defaults.
template <class Kind>
ObjectiveConfig default_objective();
/// The objective as `Kind`, or null.
template <class Kind>
const Kind* as(const ObjectiveConfig& objective);
template <class Kind>
Kind* as(ObjectiveConfig& objective) {
  return const_cast<Kind*>(as<Kind>(std::as_const(objective)));
}

/// The objective as what it is to those who do not ask for its kind.
const ObjectiveKind& as_kind(const ObjectiveConfig& objective);
ObjectiveKind& as_kind(ObjectiveConfig& objective);
/// `mlm`, `nsp`, ...
std::string kind_of(const ObjectiveConfig& objective);
/// The name of an objective's head; next-token objectives share `lm`.
std::string head_of(const ObjectiveConfig& objective);

/// The first objective of type `Kind`, or null.
template <class Kind>
const Kind* first_of(const Objectives& objectives);
/// Some objective has this answer: any_that(objectives, &ObjectiveKind::fills_masks).
bool any_that(const Objectives& objectives, bool (ObjectiveKind::*answer)() const);
/// The first objective whose rows the others share: one that makes rows of its own, else any; null: there is none.
const ObjectiveConfig* row_objective_of(const Objectives& objectives);
/// Hidden states predict the token after their own position, in masked rows too.
bool predicts_shifted(const Objectives& objectives);
/// The generative objective, or null.
const ObjectiveConfig* generative_of(const Objectives& objectives);
/// The shares of the pairs that an objective classifies; none: no objective does.
std::optional<PairShares> pairs_of(const Objectives& objectives);

/// The maskings of which each row draws one: those of the first objective that masks; empty: no masking.
std::vector<MaskingPart> maskings_of(const Objectives& objectives);
/// Some objective masks tokens of its rows.
bool masks_tokens(const Objectives& objectives);
/// Some masking changes over all of the run, however long that is.
bool masking_follows_length(const Objectives& objectives);
/// The number of versions of each sequence under static masking: that of the first objective that masks; 0: dynamic
/// masking, or none.
int64_t dupe_factor_of(const Objectives& objectives);

}  // namespace cloze
