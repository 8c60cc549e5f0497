#pragma once
#include "models/transformer_config.h"

namespace cloze {

/// BERT (Devlin et al. 2019, arXiv 1810.04805, section 3): token, position and segment embeddings, a stack of
/// bidirectional post-norm blocks with GELU, and a pooler over [CLS] if an objective uses it. Every other family is
/// described by its differences from BERT. Composed of: models/single_stack.cpp. Trained with: mlm and nsp.
/// Hugging Face: interchange/huggingface/bert.cpp. Option names of transformers' BertConfig.
/// Shapes: configs/bert, of google-research/bert and of its smaller models.
/// Parameters: bert/base 110,106,428; bert/large 336,226,108.
struct BertConfig : TransformerConfig {
  static constexpr const char* kind = "bert";
  static constexpr bool base_model_has_pooler = true;  ///< without objectives, as in Hugging Face's base class
};

}  // namespace cloze
