#pragma once
#include "models/encoder_decoder_config.h"

namespace cloze {

/// The Transformer (Vaswani et al. 2017, arXiv 1706.03762, section 3): an encoder and a decoder of post-norm blocks,
/// sinusoidal positions, one embedding for source, target and output.
/// Composed of: models/encoder_decoder.cpp. Trained with: pairs (translation).
/// Hugging Face: no class.
/// Shapes: configs/transformer. Parameters: transformer/base 63,082,496.
struct VaswaniConfig : EncoderDecoderConfig {
  static constexpr const char* kind = "transformer";
  VaswaniConfig() {
    hidden_size = 512;
    num_hidden_layers = 6;
    num_attention_heads = 8;
    intermediate_size = 2048;
    hidden_act = Activation::relu;
    layer_norm_eps = 1e-6;
    positions = PositionTable::sinusoidal;
    type_vocab_size = 1;
    attention_probs_dropout_prob = 0;
    initializer = Initializer::xavier;
    decoder_start = DecoderStart::beginning_of_text;
    scale_embedding = true;
    token_types = false;
    embedding_norm = false;
  }
};

}  // namespace cloze
