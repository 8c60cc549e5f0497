#pragma once
#include "models/encoder_decoder_config.h"

namespace cloze {

/// BART (Lewis et al. 2020, arXiv 1910.13461, section 2.1; fairseq, models/bart): an encoder and a decoder of post-norm
/// blocks with a norm after the embeddings; position 0 uses row 2 of the position table.
/// Composed of: models/encoder_decoder.cpp. Trained with: denoising.
/// Hugging Face: interchange/huggingface/bart.cpp, with mBART and PEGASUS. Option names shared with BERT (d_model =
/// hidden_size, encoder_layers = num_hidden_layers).
/// Shapes: configs/bart. Parameters: bart/base 139,420,416; bart/large 406,291,456.
struct BartConfig : EncoderDecoderConfig {
  static constexpr const char* kind = "bart";
  BartConfig() {
    num_hidden_layers = 6;
    layer_norm_eps = 1e-5;
    max_position_embeddings = 1024;
    type_vocab_size = 1;
    pad_token_id = 1;
    initializer = Initializer::normal;
    freeze_pad_embedding = true;
    attention_probs_dropout_prob = 0;
    logits_bias = LogitsBias::fixed;
    prepend_bos = true;
    token_types = false;
    position_offset = 2;
    decoder_start_token_id = 2;
    eos_token_id = 2;
  }
};

}  // namespace cloze
