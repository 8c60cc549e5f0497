#pragma once
// Which tokens are masked, and how: the options that mlm, rtd and mntp share.
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

class Constraints;
struct ObjectiveSetting;
struct RowSizes;

/// How the number of chosen tokens is computed.
enum class CountRule { rounded, ceil, stochastic, bernoulli };
constexpr auto choices(CountRule) {
  using enum CountRule;
  return std::array{Choice{rounded, "rounded", "max(1, round half to even of the share)"},
                    Choice{ceil, "ceil", "rounded up"}, Choice{stochastic, "stochastic", "floor(share + u), u uniform"},
                    Choice{bernoulli, "bernoulli", "every token independently"}};
}

/// The unit of masking.
enum class MaskingUnit { token, word, ngram, span, token_span };
constexpr auto choices(MaskingUnit) {
  using enum MaskingUnit;
  return std::array{
      Choice{token, "token"}, Choice{word, "word", "whole words"},
      Choice{ngram, "ngram", "up to max_ngram words, P(n) proportional to 1/n"},
      Choice{span, "span", "a number of words from a clipped geometric distribution"},
      Choice{token_span, "token_span", "spans of tokens that tile the text, lengths from the same distribution"}};
}

/// The unit is made of whole words.
constexpr bool is_of_words(MaskingUnit unit) {
  switch (unit) {
    case MaskingUnit::token:
    case MaskingUnit::token_span:
      return false;
    case MaskingUnit::word:
    case MaskingUnit::ngram:
    case MaskingUnit::span:
      return true;
  }
  return false;
}

/// The distribution of random replacement tokens.
enum class RandomFrom { vocabulary, words, unigram };
constexpr auto choices(RandomFrom) {
  using enum RandomFrom;
  return std::array{Choice{vocabulary, "vocabulary", "uniform over all ids, special ones included"},
                    Choice{words, "words", "uniform over all but special ids"},
                    Choice{unigram, "unigram", "by frequency in the text"}};
}

/// The tokens that share one draw of mask, random or keep.
enum class DrawPer { token, word, span };
constexpr auto choices(DrawPer) {
  return std::array{Choice{DrawPer::token, "token"}, Choice{DrawPer::word, "word"},
                    Choice{DrawPer::span, "span", "adjacent chosen tokens"}};
}

/// Which tokens are chosen, and their replacement. Source: the implementation that `like` names.
struct Masking {
  std::string like;
  double mlm_probability = 0.15;
  double initial_mlm_probability = 0;  // 0: mlm_probability throughout
  int64_t decay_steps = 0;             // 0: all steps of the run
  CountRule count = CountRule::rounded;
  int64_t max_predictions_per_seq = 0;
  bool count_special = true;
  bool mask_special = false;
  MaskingUnit unit = MaskingUnit::token;
  int64_t max_ngram = 3;
  double span_p = 0.2;
  int64_t max_span_length = 10;
  double mask_prob = 0.8;
  double random_prob = 0.1;
  RandomFrom random_from = RandomFrom::vocabulary;
  DrawPer draw_per = DrawPer::token;
};

/// The rules of a published implementation; the rate stays as it is, and of most the lengths.
inline PresetValues masking_rules(const char* count, const char* count_special, const char* mask_special,
                                  const char* unit, const char* mask_prob, const char* random_prob,
                                  const char* random_from, const char* draw_per) {
  return {{"count", count},
          {"count_special", count_special},
          {"mask_special", mask_special},
          {"unit", unit},
          {"mask_prob", mask_prob},
          {"random_prob", random_prob},
          {"random_from", random_from},
          {"draw_per", draw_per}};
}

/// Spans of 1 to 3 tokens, all lengths equally likely, with one draw of mask, random or keep per span. Source:
/// ltgoslo/gpt-bert, pretraining/dataset.py, SpanMaskingStrategy; shares of train_multi_gpu.py. Differs: the last span
/// is truncated at the number of chosen tokens (there it is kept whole); tokens that earlier epochs masked are as
/// likely as others (there less likely).
inline PresetValues gpt_bert_masking() {
  auto rules = masking_rules("stochastic", "false", "false", "token_span", "0.8", "0.1", "words", "span");
  rules.insert(rules.begin() + 4, {{"span_p", "0"}, {"max_span_length", "3"}});
  return rules;
}

template <class V>
void describe(V& v, Masking& c) {
  const auto albert = masking_rules("rounded", "true", "false", "ngram", "0.8", "0.1", "vocabulary", "token");
  v.like(c, "the masking of a published implementation",
         {{"google-bert", masking_rules("rounded", "true", "false", "token", "0.8", "0.1", "vocabulary", "token")},
          {"huggingface", masking_rules("bernoulli", "false", "false", "token", "0.8", "0.1", "vocabulary", "token")},
          {"fairseq-roberta", masking_rules("stochastic", "true", "true", "token", "0.8", "0.1", "words", "token")},
          {"albert", albert},
          {"megatron", albert},  // masked_dataset.py
          {"spanbert", masking_rules("ceil", "false", "false", "span", "0.8", "0.1", "unigram", "span")},
          {"electra", masking_rules("rounded", "true", "false", "token", "0.85", "0", "vocabulary", "token")},
          {"gpt-bert", gpt_bert_masking()}});
  v("mlm_probability", c.mlm_probability, "share of the tokens that are predicted", in_range(0, 1));
  v("initial_mlm_probability", c.initial_mlm_probability,
    "share at the start of training, which changes linearly to mlm_probability; held-out rows use mlm_probability; 0 = "
    "mlm_probability throughout",
    in_range(0, 1));
  v("decay_steps", c.decay_steps,
    "optimizer steps of that change; 0 = all of the run, by the steps of train.budget, or else its epochs or "
    "words, or else its tokens",
    at_least(0));
  v("count", c.count, "how the number of chosen tokens is computed");
  v("max_predictions_per_seq", c.max_predictions_per_seq, "maximum number of predictions in a sequence; 0 = no limit",
    at_least(0));
  v("count_special", c.count_special, "the share is of the length including [CLS] and [SEP]");
  v("mask_special", c.mask_special, "[CLS] and [SEP] may be chosen too");
  v("unit", c.unit, "unit of masking");
  v("max_ngram", c.max_ngram, "unit ngram: maximum number of words", in_range(1, 16));
  v("span_p", c.span_p, "units span and token_span: P(length) is proportional to (1 - p)^(length - 1)", in_range(0, 1));
  v("max_span_length", c.max_span_length, "maximum length: unit span in words, unit token_span in tokens",
    in_range(1, 64));
  v("mask_prob", c.mask_prob, "share of the chosen tokens that become [MASK]", in_range(0, 1));
  v("random_prob", c.random_prob, "share of the chosen tokens that become a random token; the rest are kept",
    in_range(0, 1));
  v("random_from", c.random_from, "distribution of random tokens");
  v("draw_per", c.draw_per, "the tokens that share one draw of mask, random or keep");
}

/// Static masking: each sequence has `dupe_factor` versions, which return in turn with the epochs. A version is the
/// masks of the sequence, and of a segment pair also its segments. Source: Devlin et al. 2019; google-research/bert,
/// create_pretraining_data.py, where 10 is the default; Liu et al. 2019, section 4.1 (arXiv 1907.11692). Differs: an
/// epoch reads one version of every sequence (there all versions are shuffled together); the text is cut at the same
/// tokens for all versions, but for the segments that nsp pairs with others (there each version is cut anew).
struct StaticMasking {
  int64_t dupe_factor = 0;  // 0: dynamic masking
};
template <class V>
void describe_static_masking(V& v, StaticMasking& c) {
  v("dupe_factor", c.dupe_factor,
    "static masking: number of maskings of each sequence (of pairs: with their segments), which return in turn with "
    "the "
    "epochs; 10 in BERT; held-out rows do not depend on it; 0 = dynamic masking, new in every epoch",
    at_least(0));
}

/// A component of a mixture of maskings.
struct MaskingPart : Masking {
  double share = 1;
};

template <class V>
void describe(V& v, MaskingPart& c) {
  v("share", c.share, "weight of this masking, relative to the other shares", in_range(0, 1e6));
  describe(v, static_cast<Masking&>(c));
}

/// `15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept`.
std::string masking_words(const Masking& masking);

/// The mean number of tokens that these maskings choose in a row of `length` tokens.
double expected_masks(const std::vector<MaskingPart>& maskings, double length);
/// The tokens that these maskings choose are predicted, from their own hidden states.
void expect_masks(const std::vector<MaskingPart>& maskings, std::vector<RowSizes>& rows);

// The rules of maskings; `name` is the key path in the sentence.

/// A masking alone.
void check_masking(const std::string& name, const Masking& masking, const ObjectiveSetting& in,
                   Constraints& constraints);
/// Static masking repeats masks, of which there must be some, the same number each time.
void check_static_masking(const std::string& name, const StaticMasking& repeated,
                          const std::vector<MaskingPart>& maskings, Constraints& constraints);

}  // namespace cloze
