#pragma once
#include "models/config.h"

namespace cloze {

/// BERT (Devlin et al. 2019, arXiv 1810.04805, section 3): token, position and segment embeddings, a stack of
/// bidirectional post-norm blocks with GELU, and a pooler over [CLS] if an objective uses it. Every other family is
/// described by its differences from BERT. Composed of: models/single_stack.cpp. Trained with: mlm and nsp. Shapes:
/// configs/bert, of google-research/bert and of its smaller models. Option names of transformers' BertConfig.
struct BertConfig : BackboneConfig {
  static constexpr const char* kind = "bert";
};

}  // namespace cloze
