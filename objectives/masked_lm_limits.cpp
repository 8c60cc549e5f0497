#include "core/text.h"
#include "objectives/limits.h"
#include "objectives/masked_lm.h"

namespace cloze {

namespace {

/// What the chosen tokens are made of, behind a comma; empty for single tokens.
std::string unit_words(const Masking& c) {
  switch (c.unit) {
    case MaskingUnit::token:
      return "";
    case MaskingUnit::word:
      return ", whole words";
    case MaskingUnit::ngram:
      return words(", n-grams of up to ", c.max_ngram, " words");
    case MaskingUnit::span:
      return words(", spans of up to ", c.max_span_length, " words");
    case MaskingUnit::token_span:
      return words(", spans of up to ", c.max_span_length, " tokens");
  }
  return "";
}

}  // namespace

std::string masking_words(const Masking& c) {
  std::string outcomes;
  const auto add = [&](double share, const char* name) {
    if (share > 1e-9) outcomes += words(outcomes.empty() ? "" : ", ", in_percent(share), " ", name);
  };
  add(c.mask_prob, "[MASK]");
  add(c.random_prob, "random");
  add(1 - c.mask_prob - c.random_prob, "kept");
  const auto first = c.initial_mlm_probability > 0 ? in_percent(c.initial_mlm_probability) + " and in the end " : "";
  return words(first, in_percent(c.mlm_probability), " of the tokens", unit_words(c), ": ", outcomes);
}

std::string prediction_words(const MlmConfig& c) {
  const auto parts = maskings_of(c);
  if (parts.size() == 1) return masking_words(parts.front());
  std::string text;
  for (const auto& part : parts)
    text += words(text.empty() ? "" : "; ", "in ", in_percent(part.share), " of the rows ", masking_words(part));
  return text;
}

void check_limits(const MlmConfig& c, const ObjectiveSetting& in, Limits& limits) {
  check_maskings(c.kind, c, in, limits);
  require_bidirectional(c.kind, in, limits);
}

}  // namespace cloze
