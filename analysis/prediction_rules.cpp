#include "analysis/prediction_rules.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "objectives/kinds.h"

namespace cloze {

namespace {

std::string hundredths(double share) { return digits(100 * share, 3) + " %"; }

std::string unit_words(const Masking& m) {
  switch (m.unit) {
    case MaskingUnit::token:
      return "one by one";
    case MaskingUnit::word:
      return "in whole words";
    case MaskingUnit::ngram:
      return words("in runs of 1 to ", m.max_ngram, " words");
    case MaskingUnit::span:
      return words("in spans of 1 to ", m.max_span_length, " words");
    case MaskingUnit::token_span:
      return words("in spans of 1 to ", m.max_span_length, " tokens");
  }
  return "";
}

/// Which tokens are chosen, and what becomes of them.
std::string masking_rule(const Masking& m) {
  const bool changes = m.initial_mlm_probability > 0;
  const auto share = changes
                         ? words(hundredths(m.initial_mlm_probability), ", in the end ", hundredths(m.mlm_probability))
                         : hundredths(m.mlm_probability);
  const double kept = std::max(0.0, 1 - m.mask_prob - m.random_prob);
  return words(share, " of the tokens are chosen, ", unit_words(m), ": ", hundredths(m.mask_prob),
               " of them become [MASK], ", hundredths(m.random_prob), " a random token, ", hundredths(kept),
               " stay as they are");
}

std::string masking_rules(const std::vector<MaskingPart>& maskings) {
  if (maskings.size() == 1) return masking_rule(maskings[0]) + ".";
  std::string text = "each row draws a masking.";
  for (size_t i = 0; i < maskings.size(); ++i)
    text +=
        words(" mixture.", i, ", in ", hundredths(maskings[i].share), " of the rows: ", masking_rule(maskings[i]), ".");
  return text;
}

std::string corruption_rule(const SpanCorruptionConfig& c) {
  const auto share = hundredths(c.noise_density);
  switch (c.corruption) {
    case Corruption::spans:
      return words("The source has a sentinel in the place of each hidden span, ", digits(c.mean_noise_span_length, 3),
                   " tokens on average and ", share,
                   " of the tokens in all. The target lists each sentinel with the tokens that it stands for.");
    case Corruption::iid:
      return words("The source has sentinels in the place of hidden tokens, ", share,
                   " of all, chosen one by one. The target lists each sentinel with the tokens that it stands for.");
    case Corruption::drop:
      return words("The source lacks ", share, " of the tokens, chosen one by one. The target is those tokens.");
    case Corruption::mass:
      return words("The source has a mask in the place of ", share, " of the tokens. The target is the whole text.");
    case Corruption::bert:
      return words("The source has a mask, one time in ten a random token, in the place of ", share,
                   " of the tokens. The target is the whole text.");
    case Corruption::deshuffle:
      return "The source has all tokens in a random order. The target is the text.";
    case Corruption::prefix_lm:
      return "The source is the beginning of the text, of random length. The target is the rest.";
  }
  return "";
}

std::string masked_unit(const BartNoise& c) {
  switch (c.mask_length) {
    case MaskLength::subword:
      return "tokens";
    case MaskLength::word:
      return "words";
    case MaskLength::span_poisson:
      return words("words in spans, ", digits(c.poisson_lambda, 3), " long on average,");
  }
  return "";
}

std::string noise_rule(const BartNoise& c) {
  const char* instead = c.replace_length == 0   ? "are dropped"
                        : c.replace_length == 1 ? "become one [MASK] each"
                                                : "become a [MASK] for each token";
  auto text = words("The source is damaged: ", hundredths(c.mask_ratio), " of the ", masked_unit(c), " ", instead);
  if (c.replace_length != 0 && c.random_ratio > 0)
    text += words(", ", hundredths(c.random_ratio), " of the masks a random token");
  if (c.permute_sentences > 0) text += words("; ", hundredths(c.permute_sentences), " of the sentences change places");
  if (c.rotate_prob > 0) text += words("; ", hundredths(c.rotate_prob), " of the texts begin at a random token");
  if (c.insert_ratio > 0) text += words("; ", hundredths(c.insert_ratio), " of the length is inserted");
  return text + ". The target is the whole text.";
}

struct PredictionRule {
  std::string operator()(const MlmConfig& c) const {
    return "Predicts chosen tokens from the text on both sides: " + masking_rules(maskings_of(c));
  }
  std::string operator()(const NspConfig& c) const {
    return words("Predicts from [CLS] whether segment B follows A: in ", hundredths(c.random_next_prob),
                 " of the pairs it is from another document.");
  }
  std::string operator()(const SopConfig& c) const {
    return words("Predicts from [CLS] whether the segments are in their order: ", hundredths(c.swap_prob),
                 " of the pairs are swapped.");
  }
  std::string operator()(const RtdConfig& c) const {
    const auto* by = c.replace_by == ReplaceBy::generator ? "samples of a generator" : "random tokens";
    const auto* of = c.positions == DiscriminatorPositions::all ? "every token" : "each of these tokens";
    return words(
        "Predicts of ", of, " whether it was replaced. Masked tokens are filled by ", by,
        "; one that is the original counts as original. ", masking_rules(maskings_of(c)),
        c.replace_by == ReplaceBy::generator ? " The samples here are drawn with the first weights of the run." : "");
  }
  std::string operator()(const SboConfig&) const {
    return "Predicts each token of a hidden span from the two tokens next to the span.";
  }
  std::string operator()(const MntpConfig& c) const {
    const auto causal =
        c.causal_share > 0 ? words(" ", hundredths(c.causal_share), " of the rows are causal: each token is predicted.")
                           : "";
    return words("Predicts a chosen token from the position before it: ", masking_rule(c), ".", causal);
  }
  std::string operator()(const PlmConfig&) const {
    return "Predicts chosen tokens in a random order: each from the tokens that are not chosen, and from the chosen "
           "ones before it in that order. The numbers are that order.";
  }
  std::string operator()(const ClmConfig&) const { return "Predicts each token from the tokens before it."; }
  std::string operator()(const SpanCorruptionConfig& c) const { return corruption_rule(c); }
  std::string operator()(const DenoisingConfig& c) const { return noise_rule(c); }
  std::string operator()(const GapSentencesConfig& c) const {
    return words("The source has a mask in the place of ", hundredths(c.gap_sentences_ratio), " of its sentences (",
                 name_of(c.choose), "). The target is those sentences.");
  }
  std::string operator()(const PairsConfig&) const { return "The target is the second text of a pair."; }
};

}  // namespace

std::string prediction_rule(const ObjectiveConfig& objective) { return std::visit(PredictionRule{}, *objective); }

}  // namespace cloze
