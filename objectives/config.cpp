#include "objectives/config.h"

#include <algorithm>

#include "core/config/boxed.inc"
#include "objectives/generator.h"
#include "objectives/kinds.h"
#include "objectives/masking_config.h"

namespace cloze {

template class Boxed<ObjectiveVariant>;

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
    if (const auto* config = as<Kind>(objective)) return config;
  return nullptr;
}

/// What is declared of any kind, compiled for each.
template <class... Kinds>
constexpr auto for_objectives(const std::variant<Kinds...>* each) {
  return std::tuple{makers_of<ObjectiveVariant>(each), &default_objective<Kinds>...,
                    static_cast<const Kinds* (*)(const ObjectiveConfig&)>(&as<Kinds>)..., &first_of<Kinds>...};
}
[[gnu::used]] const auto functions_of_objectives = for_objectives(static_cast<const ObjectiveVariant*>(nullptr));

Objectives default_objectives() { return {MlmConfig{}, NspConfig{}}; }

const ObjectiveKind& as_kind(const ObjectiveConfig& objective) {
  return std::visit([](const auto& own) -> const ObjectiveKind& { return own; }, *objective);
}
ObjectiveKind& as_kind(ObjectiveConfig& objective) {
  return const_cast<ObjectiveKind&>(as_kind(std::as_const(objective)));
}
std::string kind_of(const ObjectiveConfig& objective) { return as_kind(objective).name(); }
std::string head_of(const ObjectiveConfig& objective) {
  return as_kind(objective).next_token() ? "lm" : kind_of(objective);
}

// The answers of most kinds, of types that objectives/kind.h does not know.
std::vector<MaskingPart> ObjectiveKind::maskings() const { return {}; }
std::optional<Generator> ObjectiveKind::generator(const ModelConfig&) const { return {}; }
bool ObjectiveKind::draws_lengths() const { return !maskings().empty(); }

bool any_that(const Objectives& objectives, bool (ObjectiveKind::*answer)() const) {
  return std::any_of(objectives.begin(), objectives.end(), [&](const auto& one) { return (as_kind(one).*answer)(); });
}
const ObjectiveConfig* row_objective_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (as_kind(objective).makes_rows()) return &objective;
  return objectives.empty() ? nullptr : &objectives.front();
}
bool predicts_shifted(const Objectives& objectives) {
  const auto* objective = row_objective_of(objectives);
  return objective && as_kind(*objective).predicts_shifted();
}
const ObjectiveConfig* generative_of(const Objectives& objectives) {
  const auto* objective = row_objective_of(objectives);
  return objective && as_kind(*objective).is_generative() ? objective : nullptr;
}
std::optional<PairShares> pairs_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto shares = as_kind(objective).pairs()) return shares;
  return std::nullopt;
}

std::vector<MaskingPart> maskings_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (auto maskings = as_kind(objective).maskings(); !maskings.empty()) return maskings;
  return {};
}
bool masks_tokens(const Objectives& objectives) { return !maskings_of(objectives).empty(); }
bool masking_follows_length(const Objectives& objectives) {
  const auto maskings = maskings_of(objectives);
  return std::any_of(maskings.begin(), maskings.end(), [](const auto& masking) {
    return masking.initial_mlm_probability > 0 && masking.decay_steps == 0;
  });
}
int64_t dupe_factor_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto versions = as_kind(objective).versions(); versions > 0) return versions;
  return 0;
}

}  // namespace cloze
