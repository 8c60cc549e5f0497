#include "core/spelling.h"
#include "core/text.h"
#include "objectives/denoising.h"
#include "objectives/limits.h"

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
      return words("words in spans of ", shortest(c.poisson_lambda), " on average");
  }
  return "";
}

}  // namespace

std::string prediction_words(const DenoisingConfig& c) {
  auto text = words("the whole text, damaged: ", in_percent(c.mask_ratio), " of the ", length_words(c), ", ",
                    replacement_words(c.replace_length));
  const auto add = [&](double share, const char* what) {
    if (share > 0) text += words(", ", in_percent(share), " of ", what);
  };
  add(c.random_ratio, "these by random tokens");
  add(c.insert_ratio, "the length inserted");
  add(c.permute_sentences, "the sentences permuted");
  add(c.rotate_prob, "the texts rotated");
  return text;
}

void check_limits(const DenoisingConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
}

}  // namespace cloze
