#pragma once
#include "models/stack_parts.h"

namespace cloze {

/// GPT-2 (Radford et al. 2019, section 2.3; openai/gpt-2, src/model.py): a causal stack of pre-norm blocks without
/// segments; the initial deviation of projections into the residual stream is divided by the square root of their
/// number. Composed of: models/single_stack.cpp; PrefixAttention of models/stack_parts.h. Trained with: clm, and with
/// the encoder-decoder objectives, whose source and target are concatenated.
/// Hugging Face: interchange/huggingface/gpt2.cpp. Option names shared with BERT (n_embd = hidden_size).
/// Shapes: configs/gpt2. Parameters: gpt2/small 124,439,808.
struct Gpt2Config : TransformerConfig, PrefixAttention {
  static constexpr const char* kind = "gpt2";
  Gpt2Config() {
    architecture = Architecture::decoder;
    hidden_act = Activation::gelu_new;
    norm_place = NormPlacement::pre;
    layer_norm_eps = 1e-5;
    max_position_embeddings = 1024;
    type_vocab_size = 1;
    initializer = Initializer::normal_scaled;
    token_types = false;
    embedding_norm = false;
  }
};
template <class V>
void describe(V& v, Gpt2Config& c) {
  describe_transformer(v, c);
  describe_prefix(v, c);
}

}  // namespace cloze
