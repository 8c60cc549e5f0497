#pragma once
// What is asked of a network, as it stands in YAML.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace cloze {

/// What every objective has.
struct ObjectiveTerms {
  double weight = 1.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  /// Optimizer step `step` + 1 counts this loss.
  bool active(int64_t step) const { return step >= from_step && (until_step == 0 || step < until_step); }
};

template <class V>
void describe_terms(V& v, ObjectiveTerms& c, const char* weight) {
  v("weight", c.weight, weight, in_range(0, 1e6));
  v("from_step", c.from_step, "optimizer steps before this loss begins to count", at_least(0));
  v("until_step", c.until_step, "optimizer steps after which it no longer counts; 0 = it counts to the end",
    at_least(0));
}

/// Which tokens are chosen, and what stands in their place. Source: the code that `like` names.
struct Masking {
  std::string like;
  double mlm_probability = 0.15;
  std::string count = "rounded";
  int64_t max_predictions_per_seq = 0;
  bool count_special = true;
  bool mask_special = false;
  std::string unit = "token";
  int64_t max_ngram = 3;
  double span_p = 0.2;
  int64_t max_span_length = 10;
  double mask_prob = 0.8;
  double random_prob = 0.1;
  std::string random_from = "vocabulary";
  std::string draw_per = "token";
};

/// The rules by which the published codes differ.
inline void rules(Masking& m, const char* count, bool count_special, bool mask_special, const char* unit,
                  double mask_prob, double random_prob, const char* random_from, const char* draw_per) {
  m.count = count, m.count_special = count_special, m.mask_special = mask_special, m.unit = unit;
  m.mask_prob = mask_prob, m.random_prob = random_prob, m.random_from = random_from, m.draw_per = draw_per;
}

template <class V>
void describe(V& v, Masking& c) {
  v.like(
      c, "masking as in that code",
      {{"google-bert", [](Masking& m) { rules(m, "rounded", true, false, "token", 0.8, 0.1, "vocabulary", "token"); }},
       {"huggingface",
        [](Masking& m) { rules(m, "bernoulli", false, false, "token", 0.8, 0.1, "vocabulary", "token"); }},
       {"fairseq-roberta", [](Masking& m) { rules(m, "stochastic", true, true, "token", 0.8, 0.1, "words", "token"); }},
       {"albert", [](Masking& m) { rules(m, "rounded", true, false, "ngram", 0.8, 0.1, "vocabulary", "token"); }},
       {"megatron",
        [](Masking& m) {
          rules(m, "rounded", true, false, "ngram", 0.8, 0.1, "vocabulary", "token");
        }},  // Megatron-LM, masked_dataset.py: ALBERT's rules
       {"spanbert", [](Masking& m) { rules(m, "ceil", false, false, "span", 0.8, 0.1, "unigram", "span"); }},
       {"electra", [](Masking& m) { rules(m, "rounded", true, false, "token", 0.85, 0, "vocabulary", "token"); }}});
  v("mlm_probability", c.mlm_probability, "share of the tokens that is predicted", in_range(0, 1));
  v("count", c.count,
    "how many: rounded = max(1, round half to even of the share); ceil = rounded up; stochastic = floor(share + u), u "
    "uniform; bernoulli = each on its own",
    one_of({"rounded", "ceil", "stochastic", "bernoulli"}));
  v("max_predictions_per_seq", c.max_predictions_per_seq, "most predictions in a sequence; 0 = no limit", at_least(0));
  v("count_special", c.count_special, "the share is taken of the length with [CLS] and [SEP]");
  v("mask_special", c.mask_special, "[CLS] and [SEP] may be chosen too");
  v("unit", c.unit,
    "what is chosen: token; word = every piece of a word; ngram = up to max_ngram words, n with probability in "
    "proportion to 1/n; span = words by a clipped geometric distribution",
    one_of({"token", "word", "ngram", "span"}));
  v("max_ngram", c.max_ngram, "unit ngram: most words in one", in_range(1, 16));
  v("span_p", c.span_p, "unit span: P(length) is in proportion to (1 - p)^(length - 1)", in_range(0, 1));
  v("max_span_length", c.max_span_length, "unit span: most words in one", in_range(1, 64));
  v("mask_prob", c.mask_prob, "share of the chosen that becomes [MASK]", in_range(0, 1));
  v("random_prob", c.random_prob, "share of the chosen that becomes a random token; the rest is kept", in_range(0, 1));
  v("random_from", c.random_from,
    "random tokens: vocabulary = any id, special ones too; words = any but special ones; unigram = as often as in the "
    "text",
    one_of({"vocabulary", "words", "unigram"}));
  v("draw_per", c.draw_per,
    "mask, random or keep is drawn for each token, once for a chosen word, or once for a span (chosen tokens side by "
    "side)",
    one_of({"token", "word", "span"}));
}

/// A masking among others.
struct MaskingPart : Masking {
  double share = 1;
};

template <class V>
void describe(V& v, MaskingPart& c) {
  v("share", c.share, "how many rows are masked so, in proportion to the other shares", in_range(0, 1e6));
  describe(v, static_cast<Masking&>(c));
}

/// Masked language modelling: some tokens are chosen, hidden, and predicted.
/// Source: Devlin et al. 2019, section 3.1 (arXiv 1810.04805).
struct MlmConfig : ObjectiveTerms, Masking {
  static constexpr const char* kind = "mlm";
  std::vector<MaskingPart> mixture;
};

template <class V>
void describe(V& v, MlmConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  describe(v, static_cast<Masking&>(c));
  v.parts("mixture", c.mixture, static_cast<const Masking&>(c),
          "maskings of which each row draws one: a list of `share` and of what differs from the keys above, `like` "
          "included; [] = all rows are masked by the keys above");
}

/// Next sentence prediction: does segment B follow segment A? Label 0 = it does, 1 = B is from another document.
/// Source: Devlin et al. 2019, section 3.1.
struct NspConfig : ObjectiveTerms {
  static constexpr const char* kind = "nsp";
  double random_next_prob = 0.5;
};

template <class V>
void describe(V& v, NspConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("random_next_prob", c.random_next_prob, "share of the pairs whose second segment is from another document",
    in_range(0, 1));
}

/// Sentence order prediction: are the segments in the order of the text? Label 0 = they are, 1 = they were swapped.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); google-research/albert, create_pretraining_data.py.
struct SopConfig : ObjectiveTerms {
  static constexpr const char* kind = "sop";
  double swap_prob = 0.5;
};

template <class V>
void describe(V& v, SopConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("swap_prob", c.swap_prob,
    "share of the pairs that are swapped; a single sentence gets a second segment from another document, label 1",
    in_range(0, 1));
}

/// Span boundary objective: each token of a run of predicted ones, from the two hidden states beside the run and its
/// place in it. Source: Joshi et al. 2020, section 3.2 (arXiv 1907.10529); facebookresearch/SpanBERT, pair_bert.py.
/// Differs: the loss is a mean over targets (there their number + 1).
struct SboConfig : ObjectiveTerms {
  static constexpr const char* kind = "sbo";
  int64_t max_pair_targets = 15;
  int64_t position_embedding_size = 200;
};

template <class V>
void describe(V& v, SboConfig& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("max_pair_targets", c.max_pair_targets, "tokens of a run that are predicted; those behind them are not",
    in_range(1, 1 << 20));
  v("position_embedding_size", c.position_embedding_size, "width of the embedding of a token's place in its run",
    in_range(1, 1 << 18));
}

/// Replaced token detection: a small generator fills the masked places, the model tells which tokens are not the
/// text's. Source: Clark et al. 2020, section 2 (arXiv 2003.10555); google-research/electra, run_pretraining.py.
/// Differs: places are drawn without replacement, so that no two samples meet at one place.
struct RtdConfig : ObjectiveTerms {
  static constexpr const char* kind = "rtd";
  RtdConfig() { weight = 50, mlm.like = "electra", mlm.mask_prob = 0.85, mlm.random_prob = 0; }
  std::string replace_by = "generator";
  double generator_hidden_size = 0.25;
  double generator_layers = 1.0;
  double generator_weight = 1.0;
  std::string tie = "all";
  double temperature = 1.0;
  int64_t generator_steps = 0;
  MlmConfig mlm{};
};

template <class V>
void describe(V& v, RtdConfig& c) {
  describe_terms(v, c, "factor of the discriminator's loss in the sum");
  v("replace_by", c.replace_by,
    "what fills the masked places: generator = samples of a trained one; uniform = any token of the vocabulary",
    one_of({"generator", "uniform"}));
  v("generator_hidden_size", c.generator_hidden_size,
    "width of the generator as a share of hidden_size; heads and intermediate_size follow", in_range(0.01, 4));
  v("generator_layers", c.generator_layers, "layers of the generator as a share of num_hidden_layers",
    in_range(0.01, 4));
  v("generator_weight", c.generator_weight, "factor of the generator's loss in the sum", in_range(0, 1e6));
  v("tie", c.tie, "embeddings that both networks use: all = tables and norm; tables = tokens and positions; none",
    one_of({"all", "tables", "none"}));
  v("temperature", c.temperature, "the generator's logits are divided by it before a token is drawn",
    in_range(0.01, 100));
  v("generator_steps", c.generator_steps,
    "two stages: the generator trains alone for so many steps, then the discriminator starts with its weights and it "
    "rests; 0 = both train together",
    at_least(0));
  v("mlm", c.mlm, "which places the generator fills");
}

/// What every objective has that lets a decoder write.
struct NextTokenTerms : ObjectiveTerms {
  double label_smoothing = 0;
  double z_loss = 0;
  bool transform = false;
};

template <class V>
void describe_next_token(V& v, NextTokenTerms& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("label_smoothing", c.label_smoothing, "share of each label that is spread over all tokens, in training",
    in_range(0, 1, open_end));
  v("z_loss", c.z_loss, "factor of the square of the logits' log-sum-exp, in training; T5 has 1e-4", in_range(0, 1));
}

/// Causal language modelling: each token from those before it.
/// Source: Radford et al. 2018, section 3.1.
struct ClmConfig : NextTokenTerms {
  static constexpr const char* kind = "clm";
};
template <class V>
void describe(V& v, ClmConfig& c) {
  describe_next_token(v, c);
  v("transform", c.transform,
    "the head has a dense layer, an activation and a norm before the token table, as BertLMHeadModel has; false = the "
    "table alone, as GPT-2");
}

/// Span corruption: an encoder reads a text with holes, the decoder writes what is missing; with the other objectives
/// that its paper compares. Source: Raffel et al. 2020, sections 3.1.4 and 3.3 (arXiv 1910.10683);
/// google-research/text-to-text-transfer-transformer, preprocessors.py.
struct SpanCorruptionConfig : NextTokenTerms {
  static constexpr const char* kind = "span_corruption";
  std::string like;
  std::string corruption = "spans";
  double noise_density = 0.15;
  double mean_noise_span_length = 3;
};
template <class V>
void describe(V& v, SpanCorruptionConfig& c) {
  v.like(c, "corruption as in that code", {{"t5", [](SpanCorruptionConfig& m) {
                                              m.corruption = "spans", m.noise_density = 0.15,
                                              m.mean_noise_span_length = 3;
                                            }}});
  describe_next_token(v, c);
  v("corruption", c.corruption,
    "spans = runs of tokens, each behind a sentinel; iid = tokens one by one; drop = tokens one by one, without "
    "sentinels; mass = tokens hidden, the whole text written; bert = the same with a tenth of them random; deshuffle = "
    "all tokens in another order; prefix_lm = the start read, the rest written",
    one_of({"spans", "iid", "drop", "mass", "bert", "deshuffle", "prefix_lm"}));
  v("noise_density", c.noise_density, "share of the tokens that is hidden; of spans at least one token",
    in_range(0, 1, open_end));
  v("mean_noise_span_length", c.mean_noise_span_length, "corruption spans: mean length of a run [tokens]",
    in_range(1, 1000));
}

/// Denoising: an encoder reads a text that was damaged, the decoder writes it whole.
/// Source: Lewis et al. 2020, section 2.2 (arXiv 1910.13461); fairseq, denoising_dataset.py.
struct DenoisingConfig : NextTokenTerms {
  static constexpr const char* kind = "denoising";
  std::string like;
  double permute_sentences = 1;
  double mask_ratio = 0.3;
  double poisson_lambda = 3.5;
  double random_ratio = 0.1;
  double insert_ratio = 0;
  double rotate_prob = 0;
  std::string mask_length = "span-poisson";
  int64_t replace_length = 1;
};
template <class V>
void describe(V& v, DenoisingConfig& c) {
  v.like(c, "noise as in that code", {{"bart", [](DenoisingConfig& m) {
                                         m.permute_sentences = 1, m.mask_ratio = 0.3, m.poisson_lambda = 3.5,
                                         m.random_ratio = 0.1, m.insert_ratio = m.rotate_prob = 0,
                                         m.mask_length = "span-poisson", m.replace_length = 1;
                                       }}});
  describe_next_token(v, c);
  v("permute_sentences", c.permute_sentences, "share of the sentences that change places among themselves",
    in_range(0, 1));
  v("mask_ratio", c.mask_ratio, "share of the words that is masked or removed", in_range(0, 1));
  v("mask_length", c.mask_length,
    "how much at once: subword, word, or span-poisson = so many words by a Poisson distribution, none at all included",
    one_of({"subword", "word", "span-poisson"}));
  v("poisson_lambda", c.poisson_lambda, "mean of that distribution [words]", in_range(0.1, 100));
  v("replace_length", c.replace_length,
    "what stands for a span: 1 = one [MASK], 0 = nothing, -1 = a [MASK] for each token", in_range(-1, 1));
  v("random_ratio", c.random_ratio, "share of the [MASK]s that is a random token instead", in_range(0, 1));
  v("insert_ratio", c.insert_ratio, "tokens that are inserted, as a share of the length", in_range(0, 1));
  v("rotate_prob", c.rotate_prob, "share of the texts that start at another token", in_range(0, 1));
}

/// Gap sentences: whole sentences are hidden from the encoder, the decoder writes them.
/// Source: Zhang et al. 2020, section 3.1 (arXiv 1912.08777).
struct GapSentencesConfig : NextTokenTerms {
  static constexpr const char* kind = "gap_sentences";
  std::string like;
  double gap_sentences_ratio = 0.3;
  std::string choose = "ind-orig";
};
template <class V>
void describe(V& v, GapSentencesConfig& c) {
  v.like(c, "choice as in that paper",
         {{"pegasus", [](GapSentencesConfig& m) { m.gap_sentences_ratio = 0.3, m.choose = "ind-orig"; }}});
  describe_next_token(v, c);
  v("gap_sentences_ratio", c.gap_sentences_ratio, "share of the sentences that is hidden", in_range(0, 1));
  v("choose", c.choose,
    "which: those most like the rest by ROUGE-1, each scored alone (ind-) or with those chosen before (seq-), a "
    "repeated token counted each time (-orig) or once (-uniq); random; lead = the first ones",
    one_of({"ind-orig", "ind-uniq", "seq-orig", "seq-uniq", "random", "lead"}));
}

/// Pairs of texts: the decoder writes the second of each.
/// Source: Sutskever et al. 2014, section 2 (arXiv 1409.3215).
struct PairsConfig : NextTokenTerms {
  static constexpr const char* kind = "pairs";
};
template <class V>
void describe(V& v, PairsConfig& c) {
  describe_next_token(v, c);
}

/// Permutation language modelling: chosen tokens are predicted in a random order, each from the tokens that are not
/// chosen, from those before it in that order. Rows carry a memory where model.mem_len says so, and are pairs where
/// data.packing is segment_pair. Source: Yang et al. 2019, sections 2.2 to 2.4 (arXiv 1906.08237); defaults of
/// zihangdai/xlnet's README, XLNet-Large.
struct PlmConfig : NextTokenTerms {
  static constexpr const char* kind = "plm";
  std::string like;
  int64_t num_predict = 0;
  int64_t perm_size = 0;
  int64_t mask_alpha = 6;
  int64_t mask_beta = 1;
  int64_t max_ngram = 5;
};
template <class V>
void describe(V& v, PlmConfig& c) {
  v.like(c, "order and choice as in that code", {{"xlnet", [](PlmConfig& m) {
                                                    m.num_predict = 85, m.perm_size = 256, m.mask_alpha = 6,
                                                    m.mask_beta = 1, m.max_ngram = 5;
                                                  }}});
  describe_next_token(v, c);
  v("num_predict", c.num_predict, "most tokens of a sequence that are predicted; 0 = a sixth of them", at_least(0));
  v("perm_size", c.perm_size, "tokens that are permuted together; 0 = all of a sequence", at_least(0));
  v("mask_alpha", c.mask_alpha, "a span of k tokens is chosen in a context of k mask_alpha / mask_beta",
    in_range(1, 1 << 20));
  v("mask_beta", c.mask_beta, "the divisor of that context", in_range(1, 1 << 20));
  v("max_ngram", c.max_ngram, "longest span [tokens]; k has probability in proportion to 1/k", in_range(1, 64));
}

using ObjectiveConfig = std::variant<MlmConfig, NspConfig, SopConfig, RtdConfig, SboConfig, ClmConfig,
                                     SpanCorruptionConfig, DenoisingConfig, GapSentencesConfig, PairsConfig, PlmConfig>;
using Objectives = std::vector<ObjectiveConfig>;

/// A decoder writes what is asked for: all that predicts next tokens but plm, which fills places of the text itself.
inline bool asks_to_write(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return std::is_base_of_v<NextTokenTerms, std::decay_t<decltype(o)>>; },
                    objective) &&
         !std::holds_alternative<PlmConfig>(objective);
}

/// The name of the head that serves an objective: losses that predict the next token share one.
inline std::string head_of(const ObjectiveConfig& objective) {
  if (asks_to_write(objective) || std::holds_alternative<PlmConfig>(objective)) return "lm";
  return std::visit([](const auto& o) { return std::string(o.kind); }, objective);
}

/// The masking that a list of objectives asks of its rows, or null.
inline const MlmConfig* masking_of(const Objectives& objectives) {
  for (const auto& o : objectives) {
    if (const auto* mlm = std::get_if<MlmConfig>(&o)) return mlm;
    if (const auto* rtd = std::get_if<RtdConfig>(&o)) return &rtd->mlm;
  }
  return nullptr;
}

/// The maskings of which each row draws one, their shares with a sum of 1.
inline std::vector<MaskingPart> maskings_of(const MlmConfig& mlm) {
  if (mlm.mixture.empty()) return {{mlm, 1}};
  auto parts = mlm.mixture;
  double sum = 0;
  for (const auto& part : parts) sum += part.share;
  for (auto& part : parts) part.share /= sum;
  return parts;
}

}  // namespace cloze
