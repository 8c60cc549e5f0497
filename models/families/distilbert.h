#pragma once
#include "models/families/bert.h"

namespace cloze {

/// DistilBERT (Sanh et al. 2019, arXiv 1910.01108, section 3): BERT of half the depth, without segment embeddings and
/// pooler. Composed of: models/single_stack.cpp. Trained with: mlm.
/// Hugging Face: interchange/huggingface/distilbert.cpp. Option names shared with BERT (dim = hidden_size, n_layers =
/// num_hidden_layers).
/// Shapes: configs/distilbert. Parameters: distilbert/base 66,985,530.
/// Differs: dropout after the attention projection too, as in BERT.
struct DistilBertConfig : BertConfig {
  static constexpr const char* kind = "distilbert";
  static constexpr bool base_model_has_pooler = false;
  DistilBertConfig() {
    num_hidden_layers = 6;
    type_vocab_size = 1;
    token_types = false;
    initializer = Initializer::normal;
  }
};

}  // namespace cloze
