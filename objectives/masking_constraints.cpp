// Rules of maskings, and their words.
#include <algorithm>

#include "core/text.h"
#include "models/layers/cost.h"
#include "objectives/constraints.h"
#include "objectives/masking_config.h"

namespace cloze {

namespace {

/// What the chosen tokens are made of, after a comma; empty for single tokens.
std::string unit_words(const Masking& c) {
  switch (c.unit) {
    case MaskingUnit::token:
      return "";
    case MaskingUnit::word:
      return ", whole words";
    case MaskingUnit::ngram:
      return concat(", n-grams of up to ", c.max_ngram, " words");
    case MaskingUnit::span:
      return concat(", spans of up to ", c.max_span_length, " words");
    case MaskingUnit::token_span:
      return concat(", spans of up to ", c.max_span_length, " tokens");
  }
  return "";
}

}  // namespace

std::string masking_words(const Masking& c) {
  std::string outcomes;
  const auto add = [&](double fraction, const char* name) {
    if (fraction > 1e-9) outcomes += concat(outcomes.empty() ? "" : ", ", in_percent(fraction), " ", name);
  };
  add(c.mask_prob, "[MASK]");
  add(c.random_prob, "random");
  add(1 - c.mask_prob - c.random_prob, "kept");
  const auto first = c.initial_mlm_probability > 0 ? in_percent(c.initial_mlm_probability) + " and in the end " : "";
  return concat(first, in_percent(c.mlm_probability), " of the tokens", unit_words(c), ": ", outcomes);
}

void check_masking(const std::string& name, const Masking& m, const ObjectiveSetting& in, Constraints& constraints) {
  constraints.forbid(m.mask_prob + m.random_prob > 1 + 1e-9, name, ": mask_prob ", m.mask_prob, " and random_prob ",
                     m.random_prob, " add up to more than 1; lower one of them");
  constraints.forbid(
      m.draw_per == DrawPer::word && !is_of_words(m.unit), name,
      ": draw_per: word needs a unit of whole words; choose unit: word, ngram or span, or draw_per: token");
  constraints.forbid(m.count == CountRule::bernoulli && m.unit != MaskingUnit::token && m.unit != MaskingUnit::word,
                     name, ": count: bernoulli draws single tokens or words; with unit: ", m.unit,
                     " choose count: rounded, ceil or stochastic");
  constraints.forbid(
      m.mask_special && m.unit == MaskingUnit::span, name,
      ": mask_special is not supported with unit: span; choose another unit, or set mask_special to false");
  constraints.forbid(
      m.initial_mlm_probability > 0 && m.decay_steps == 0 && in.steps == 0 && !in.ends_by_text, name,
      ": initial_mlm_probability ", m.initial_mlm_probability,
      " changes to mlm_probability over the steps, epochs, words or tokens of train.budget, which has none of "
      "them; set one, or decay_steps, or set initial_mlm_probability to 0");
}

void check_static_masking(const std::string& name, const StaticMasking& repeated,
                          const std::vector<MaskingPart>& maskings, Constraints& constraints) {
  if (repeated.dupe_factor == 0) return;
  const auto changes = [](const auto& part) { return part.initial_mlm_probability > 0; };
  const auto masks = [](const auto& part) { return part.mlm_probability > 0; };
  const bool changing = std::any_of(maskings.begin(), maskings.end(), changes);
  constraints.forbid(
      changing, name, ": dupe_factor ", repeated.dupe_factor,
      " repeats masks, and initial_mlm_probability changes how many there are from step to step; set one of "
      "them to 0");
  constraints.forbid(!changing && std::none_of(maskings.begin(), maskings.end(), masks), name, ": dupe_factor ",
                     repeated.dupe_factor,
                     " repeats masks, and mlm_probability 0 makes none; raise it, or set dupe_factor to 0");
}

double expected_masks(const std::vector<MaskingPart>& maskings, double length) {
  double sum = 0;
  for (const auto& masking : maskings) sum += masking.share * masking.mlm_probability * length;
  return sum;
}

void expect_masks(const std::vector<MaskingPart>& maskings, std::vector<RowSizes>& rows) {
  for (auto& row : rows) {
    row.predicted = expected_masks(maskings, row.length);
    row.read += row.predicted;
  }
}

}  // namespace cloze
