#pragma once
#include "models/config.h"

namespace cloze {

/// DistilBERT (Sanh et al. 2019, arXiv 1910.01108, section 3): BERT of half the depth, without segment embeddings and
/// pooler. Composed of: models/single_stack.cpp. Trained with: mlm. Shapes: configs/distilbert. Option names shared
/// with BERT (dim = hidden_size, n_layers = num_hidden_layers). Differs: dropout after the attention projection too, as
/// in BERT.
struct DistilBertConfig : BackboneConfig {
  static constexpr const char* kind = "distilbert";
  DistilBertConfig() {
    num_hidden_layers = 6;
    type_vocab_size = 1;
    token_types = false;
    base_model_has_pooler = false;
    initializer = Initializer::normal;
  }
};

}  // namespace cloze
