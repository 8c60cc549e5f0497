#include "objectives/config.h"

#include <algorithm>
#include <type_traits>

#include "core/boxed.inc"
#include "objectives/kinds.h"

namespace cloze {

template class Boxed<ObjectiveKind>;

template <class Kind>
ObjectiveConfig default_objective() {
  return Kind{};
}
template <class Kind>
const Kind* as(const ObjectiveConfig& objective) {
  return std::get_if<Kind>(&*objective);
}
template <class Kind>
const Kind* first_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto* found = as<Kind>(objective)) return found;
  return nullptr;
}

#define CLOZE_FUNCTIONS_OF(Kind)                         \
  template Boxed<ObjectiveKind>::Boxed(Kind);            \
  template ObjectiveConfig default_objective<Kind>();    \
  template const Kind* as<Kind>(const ObjectiveConfig&); \
  template const Kind* first_of<Kind>(const Objectives&)
CLOZE_FUNCTIONS_OF(MlmConfig);
CLOZE_FUNCTIONS_OF(NspConfig);
CLOZE_FUNCTIONS_OF(SopConfig);
CLOZE_FUNCTIONS_OF(RtdConfig);
CLOZE_FUNCTIONS_OF(SboConfig);
CLOZE_FUNCTIONS_OF(ClmConfig);
CLOZE_FUNCTIONS_OF(SpanCorruptionConfig);
CLOZE_FUNCTIONS_OF(DenoisingConfig);
CLOZE_FUNCTIONS_OF(GapSentencesConfig);
CLOZE_FUNCTIONS_OF(PairsConfig);
CLOZE_FUNCTIONS_OF(PlmConfig);
CLOZE_FUNCTIONS_OF(MntpConfig);
#undef CLOZE_FUNCTIONS_OF

Objectives default_objectives() { return {MlmConfig{}, NspConfig{}}; }

std::string kind_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return std::string(o.kind); }, *objective);
}
const ObjectiveTerms& terms_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) -> const ObjectiveTerms& { return o; }, *objective);
}
RowKind rows_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.rows; }, *objective);
}
bool classifies_pairs(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.classifies_pairs; }, *objective);
}
std::string prediction_words(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return prediction_words(o); }, *objective);
}
bool predicts_tokens(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.predicts_tokens; }, *objective);
}
bool fills_masks(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.fills_masks; }, *objective);
}
bool reads_text_pairs(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return o.reads_text_pairs; }, *objective);
}
Placeholder blank_of(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.blank(); }) return o.blank();
        return Placeholder::none;
      },
      *objective);
}
bool continues_source(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.continues_source(); }) return o.continues_source();
        return false;
      },
      *objective);
}
std::string head_of(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        return std::string(std::is_base_of_v<NextTokenTerms, std::decay_t<decltype(o)>> ? "lm" : o.kind);
      },
      *objective);
}
bool has_transform(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.transform; }) return o.transform;
        return false;
      },
      *objective);
}

const ObjectiveConfig* row_objective_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (rows_of(objective) != RowKind::masked) return &objective;
  return objectives.empty() ? nullptr : &objectives.front();
}
bool predicts_shifted(const Objectives& objectives) {
  const auto* found = row_objective_of(objectives);
  return found && rows_of(*found) == RowKind::shifted;
}
bool is_generative(const ObjectiveConfig& objective) { return rows_of(objective) == RowKind::generative; }
const ObjectiveConfig* generative_of(const Objectives& objectives) {
  const auto* found = row_objective_of(objectives);
  return found && is_generative(*found) ? found : nullptr;
}

std::vector<MaskingPart> maskings_of(const Objectives& objectives) {
  std::vector<MaskingPart> found;
  for (const auto& objective : objectives)
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { maskings_of(o); })
            if (found.empty()) found = maskings_of(o);
        },
        *objective);
  return found;
}
bool masks_tokens(const Objectives& objectives) { return !maskings_of(objectives).empty(); }
bool masking_follows_length(const Objectives& objectives) {
  const auto maskings = maskings_of(objectives);
  return std::any_of(maskings.begin(), maskings.end(), [](const auto& masking) {
    return masking.initial_mlm_probability > 0 && masking.decay_steps == 0;
  });
}
int64_t dupe_factor_of(const Objectives& objectives) {
  int64_t found = 0;
  for (const auto& objective : objectives)
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { dupe_factor_of(o); })
            if (found == 0) found = dupe_factor_of(o);
        },
        *objective);
  return found;
}

}  // namespace cloze
