#pragma once
// A config's objectives: a list of kinds, and what is asked of whichever they are.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/boxed.h"
#include "objectives/terms.h"

namespace cloze {

// The kinds and their parts, for declarations; a file that asks one for its options includes its header.
struct ClmConfig;
struct DenoisingConfig;
struct GapSentencesConfig;
struct MlmConfig;
struct MntpConfig;
struct NspConfig;
struct PairsConfig;
struct PlmConfig;
struct RtdConfig;
struct SboConfig;
struct SopConfig;
struct SpanCorruptionConfig;
struct Masking;
struct MaskingPart;
struct StaticMasking;

/// One of the objectives in objectives/kinds.h.
struct ObjectiveKind;
extern template class Boxed<ObjectiveKind>;
using ObjectiveConfig = Boxed<ObjectiveKind>;
using Objectives = std::vector<ObjectiveConfig>;

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

/// `mlm`, `nsp`, ...
std::string kind_of(const ObjectiveConfig& objective);
const ObjectiveTerms& terms_of(const ObjectiveConfig& objective);
RowKind rows_of(const ObjectiveConfig& objective);
bool classifies_pairs(const ObjectiveConfig& objective);
/// What it predicts, in a few words: `15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept`.
std::string prediction_words(const ObjectiveConfig& objective);
/// False for objectives that classify, whose baseline is the majority of the labels.
bool predicts_tokens(const ObjectiveConfig& objective);
bool fills_masks(const ObjectiveConfig& objective);
bool reads_text_pairs(const ObjectiveConfig& objective);
/// What stands for a blank in the source; none for objectives without a source.
Placeholder blank_of(const ObjectiveConfig& objective);
bool continues_source(const ObjectiveConfig& objective);
/// The name of an objective's head; next-token objectives share `lm`.
std::string head_of(const ObjectiveConfig& objective);
/// The LM head has a dense layer, an activation and a norm before the output embedding.
bool has_transform(const ObjectiveConfig& objective);

/// The first objective of type `Kind`, or null.
template <class Kind>
const Kind* first_of(const Objectives& objectives);
/// The first objective whose rows the others share: one that makes rows of its own, else any; null: there is none.
const ObjectiveConfig* row_objective_of(const Objectives& objectives);
/// Hidden states predict the token after their own position, in masked rows too.
bool predicts_shifted(const Objectives& objectives);
/// The objective trains generation: its rows are sources and targets.
bool is_generative(const ObjectiveConfig& objective);
/// The generative objective, or null.
const ObjectiveConfig* generative_of(const Objectives& objectives);

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
