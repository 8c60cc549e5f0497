#pragma once
#include "models/config.h"

namespace cloze {

/// GPT-2 (Radford et al. 2019, section 2.3; openai/gpt-2, src/model.py): a causal stack of pre-norm blocks without
/// segments; projections into the residual stream start smaller by the square root of their number.
/// Composed of: models/single_stack.cpp. Trained with: clm, and with the objectives of encoder-decoders, whose source
/// and target it reads in one line.
/// Shapes: configs/gpt2. Option names shared with BERT (n_embd = hidden_size).
struct Gpt2Config : BackboneConfig {
  static constexpr const char* kind = "gpt2";
  Gpt2Config() {
    architecture = Architecture::decoder;
    hidden_act = "gelu_new";
    norm_place = NormPlacement::pre;
    layer_norm_eps = 1e-5;
    max_position_embeddings = 1024;
    type_vocab_size = 1;
    initializer = Initializer::normal_scaled;
    token_types = false;
    bare_pooler = false;
    embedding_norm = false;
  }
};
template <class V>
void describe(V& v, Gpt2Config& c) {
  describe_backbone(v, c);
  v("prefix_lm", c.prefix_lm,
    "attention is bidirectional among the tokens that are read, but for the last of them, and causal from there on "
    "(prefix LM, Raffel et al. 2020, section 3.2.1)");
}

}  // namespace cloze
