#include "inference/scoring/form_rules.h"

#include <algorithm>

#include "core/contains.h"
#include "core/error.h"
#include "core/text.h"
#include "inference/scoring/scorer.h"

namespace cloze {

namespace {

using enum ScoringForm;
using Forms = std::vector<ScoringForm>;

/// Why no objective of a run answers a form.
const char* reason(ScoringForm form) {
  switch (form) {
    case pll:
    case pll_word_l2r:
    case pll_span:
      return "it was not trained to predict masked tokens";
    case likelihood:
      return "it was not trained to predict tokens from those before them";
    case detection:
      return "it has no discriminator of replaced tokens";
  }
  return "";
}

/// The forms that the objectives answer together, in the order of the objectives.
Forms all_forms(const RunConfig& config) {
  Forms all;
  for (const auto& objective : config.objectives)
    for (const auto form : as_kind(objective).forms(backbone_of(config.model)))
      if (!contains(all, form)) all.push_back(form);
  return all;
}

/// Why no form scores a run.
std::string no_form(const RunConfig& config) {
  if (config.objectives.empty()) return "it has no head that predicts tokens; import a model with its prediction head";
  std::vector<std::string> kinds;
  for (const auto& objective : config.objectives) kinds.push_back(kind_of(objective));
  return concat("it has no head that gives probabilities of tokens, only that of ", listed(kinds, "and"),
                "; score a run of mlm, mntp, rtd, clm, plm, span_corruption, denoising, gap_sentences or pairs");
}

}  // namespace

const ObjectiveConfig* scored_objective(const Objectives& objectives, const BackboneConfig& model, ScoringForm form) {
  for (const auto& objective : objectives) {
    const auto forms = as_kind(objective).forms(model);
    if (contains(forms, form)) return &objective;
  }
  return nullptr;
}

std::optional<ScoringForm> usual_form(const RunConfig& config) {
  const auto forms = all_forms(config);
  return forms.empty() ? std::nullopt : std::optional(forms.front());
}

ScoringForm default_form(const RunConfig& config) {
  const auto form = usual_form(config);
  if (!form) fail<ConfigError>("the run cannot be scored: ", no_form(config));
  return *form;
}

std::string scoring_fault(const RunConfig& config, std::optional<ScoringForm> form) {
  const auto forms = all_forms(config);
  if (forms.empty()) return "the run cannot be scored: " + no_form(config);
  if (!form || contains(forms, *form)) return "";
  std::vector<std::string> others;
  for (const auto other : forms) others.emplace_back(name_of(other));
  return concat("the run cannot be scored by ", name_of(*form), ", because ", reason(*form), "; choose ",
                listed(others, "or"));
}

}  // namespace cloze
