#include "core/spelling.h"
#include "core/text.h"
#include "objectives/denoising/denoising.h"
#include "objectives/constraints.h"

namespace cloze {

namespace {

/// How masked words are replaced.
const char* replacement_words(int64_t replace_length) {
  if (replace_length == 0) return "deleted";
  return replace_length == 1 ? "one [MASK] each" : "a [MASK] for each token";
}

std::string length_words(const DenoisingConfig& c) {
  switch (c.mask_length) {
    case MaskLength::subword:
      return "tokens";
    case MaskLength::word:
      return "words";
    case MaskLength::span_poisson:
      return concat("words in spans of ", shortest(c.poisson_lambda), " on average");
  }
  return "";
}

}  // namespace

std::string DenoisingConfig::prediction() const {
  auto text = concat("the whole text, damaged: ", in_percent(mask_ratio), " of the ", length_words(*this), ", ",
                     replacement_words(replace_length));
  const auto add = [&](double fraction, const char* what) {
    if (fraction > 0) text += concat(", ", in_percent(fraction), " of ", what);
  };
  add(random_ratio, "these by random tokens");
  add(insert_ratio, "the length inserted");
  add(permute_sentences, "the sentences permuted");
  add(rotate_prob, "the texts rotated");
  return text;
}

void DenoisingConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_generative(kind, *this, in, constraints);
}

void DenoisingConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  expect_source_target(1, in, rows);
}

std::optional<SourceTargetLayout> DenoisingConfig::layout() const {
  using enum SourceTargetLayout::Prefix;
  const bool one = replace_length != -1;
  return SourceTargetLayout{.prefix = one ? repeated : masks, .target_has_text = true, .one_mask = one};
}

std::vector<ScoringForm> DenoisingConfig::forms(const BackboneConfig&) const {
  auto forms = masked_forms();
  forms.push_back(ScoringForm::likelihood);
  return forms;
}

}  // namespace cloze
