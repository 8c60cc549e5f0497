#pragma once
// The heads of tasks that are published for each family: what stands between its states and the logits. Without
// LibTorch.
#include "core/tensor/activation.h"
#include "models/families/model_config.h"

namespace cloze {

/// What a head gives outputs for: each text, each candidate of an item, each token, or each token as the first and as
/// the last of an answer.
enum class HeadUse { texts, candidates, tokens, spans };

/// Whose head it is, or which state of a text its layers read.
enum class HeadDesign { huggingface, original, mean, first, last, babylm, babylm_left, babylm_pooled };
constexpr auto choices(HeadDesign) {
  using enum HeadDesign;
  return std::array{Choice{huggingface, "huggingface", "that of the family's class in transformers"},
                    Choice{original, "original", "that of the authors of the family, with their first weights"},
                    Choice{mean, "mean", "the mean of the states of all real tokens"},
                    Choice{first, "first", "the state of the first token"},
                    Choice{last, "last", "the state of the last real token"},
                    Choice{babylm, "babylm", "that of BabyLM's program: norm, dense, gelu, norm over the first token"},
                    Choice{babylm_left, "babylm-left", "the same over the first position of rows padded on the left"},
                    Choice{babylm_pooled, "babylm-pooled", "the same over the state that the family's head reads"}};
}

/// Distributions of first weights: normal, truncated at two standard deviations or not; uniform as Glorot and Bengio
/// 2010; uniform in 1 / sqrt(inputs) with biases drawn too, as torch's nn.Linear.
enum class FirstWeights { normal, truncated, glorot, torch_linear };

/// The token whose state stands for a text.
enum class ClassToken { first, last, last_end };

/// The layers of a head, in their order: pooler, block, dropout, plain norm, dense, norm or plain norm, dropout,
/// output.
struct PublishedHead {
  ClassToken token = ClassToken::first;  ///< of heads that read one state of a text
  bool mean = false;                     ///< they read the mean of all states instead
  bool pooler = false;                   ///< the pooler of the backbone
  bool block = false;                    ///< a feed-forward layer with residual and norm, as in BigBird's spans
  bool dropout_before = false;           ///< before the dense layer too
  bool dense = false;                    ///< hidden_size to hidden_size
  bool dense_bias = true;
  Activation activation = Activation::tanh;
  bool norm = false;
  bool plain_norms = false;  ///< norms without weights, epsilon 1e-5, before the dense layer and after its activation
  double dropout = 0;        ///< before the output
  bool output_bias = true;   ///< of the output
  FirstWeights weights = FirstWeights::normal;
  double dense_range = 0.02, output_range = 0.02;  ///< standard deviations, of normal and truncated
};

/// The head of `design` that is published for this use. Families without one have RoBERTa's.
/// Source: transformers 5.24, models/*/modeling_*.py; google-research/bert, run_classifier.py; google-research/electra,
/// finetune; facebookresearch/fairseq, models/{roberta,bart}; openai/finetune-transformer-lm, train.py;
/// babylm-org/babylm-eval, strict/evaluation_pipeline/finetune/classifier_model.py.
/// Differs: tags of T5 have first weights of deviation 1 / sqrt(hidden_size), as its other heads have (there 1).
PublishedHead published_head(const ModelConfig& model, HeadUse use, HeadDesign design);

/// One state stands for each text, or for each candidate.
constexpr bool reads_texts(HeadUse use) { return use == HeadUse::texts || use == HeadUse::candidates; }

/// The head is one of BabyLM's program, whose rows have no segments.
constexpr bool is_of_babylm(HeadDesign design) {
  return design == HeadDesign::babylm || design == HeadDesign::babylm_left || design == HeadDesign::babylm_pooled;
}

}  // namespace cloze
