#pragma once
#include "models/encoder_decoder_config.h"

namespace cloze {

/// T5 (Raffel et al. 2020, arXiv 1910.10683, section 2.1): an encoder and a decoder of pre-norm blocks with RMS norms
/// and without biases. Positions enter as a relative position bias of the scores, one scalar for each head and bucket
/// of distances, shared by all layers. The defaults are version 1.0; 1.1 has feed_forward: gated, hidden_act: gelu_new,
/// tie_word_embeddings: false, scale_decoder_outputs: false. Composed of: models/encoder_decoder.cpp;
/// models/positions/bucket_bias.cpp. Trained with: span_corruption.
/// Hugging Face: interchange/huggingface/t5.cpp, with mT5. Option names shared with BERT (d_model = hidden_size, d_ff =
/// intermediate_size).
/// Shapes: configs/t5. Parameters: t5/small 60,506,624; t5/base 222,903,552; t5/v1_1-small 76,961,152.
struct T5Config : EncoderDecoderConfig {
  static constexpr const char* kind = "t5";
  T5Config() {
    hidden_size = 512;
    num_hidden_layers = 6;
    num_attention_heads = 8;
    intermediate_size = 2048;
    hidden_act = Activation::relu;
    norm_place = NormPlacement::pre;
    norm_kind = NormKind::rms;
    layer_norm_eps = 1e-6;
    d_kv = 64;
    positions = BucketBias{};
    type_vocab_size = 1;
    initializer = Initializer::fan_in;
    activation_dropout = 0.1;
    max_position_embeddings = 512;
    decoder_start = DecoderStart::padding;
    scale_decoder_outputs = true;
    final_dropout = true;
    token_types = false;
    embedding_norm = false;
    attention_bias = mlp_bias = false;
    scale_scores = false;
  }
};
template <class V>
void describe(V& v, T5Config& c) {
  describe_encoder_decoder(v, c);
  v("d_kv", c.d_kv, "head width; 0 = hidden_size / num_attention_heads", in_range(0, limits::head_width));
  if (auto* bias = std::get_if<BucketBias>(&c.positions.relative)) describe(v, *bias);
  v("scale_decoder_outputs", c.scale_decoder_outputs,
    "hidden states are divided by sqrt(hidden_size) before the LM head, as in version 1.0");
}

}  // namespace cloze
