#pragma once
// The options of an encoder-decoder.
#include "models/transformer_config.h"

namespace cloze {

/// The special token that starts the decoder's input, taken from the tokenizer that the model is trained with.
enum class DecoderStart { padding, end_of_text, beginning_of_text };

/// The decoder start token and the forced tokens of an encoder-decoder's generation.
struct DecodingIds {
  int64_t decoder_start_token_id = 0;
  int64_t forced_bos_token_id = -1;
  int64_t forced_eos_token_id = -1;
  /// The decoder's input starts with the last target token (mBART's language id), not with decoder_start_token_id.
  bool decoder_starts_with_last_target = false;
};

/// Encoder-decoder families. `architecture` may also select one of the two stacks.
struct EncoderDecoderConfig : TransformerConfig, DecodingIds {
  bool shared_embeddings = true;
  int64_t num_decoder_layers = 0;
  int64_t decoder_attention_heads = 0;
  int64_t decoder_ffn_dim = 0;
  DecoderStart decoder_start = DecoderStart::end_of_text;

  EncoderDecoderConfig() { architecture = Architecture::encoder_decoder; }
  /// The decoder's sizes.
  int64_t decoder_layers() const { return num_decoder_layers > 0 ? num_decoder_layers : num_hidden_layers; }
  int64_t decoder_heads() const { return decoder_attention_heads > 0 ? decoder_attention_heads : num_attention_heads; }
  int64_t decoder_inner_size() const { return decoder_ffn_dim > 0 ? decoder_ffn_dim : intermediate_size; }
  /// The decoder's stack: depth, heads and feed-forward width of its own, causal, with cross-attention in each block.
  StackConfig decoder_stack() const;

  double layer_weights() const override;
  double embedding_weights() const override;
  double activations(const std::vector<RowSizes>& rows, bool recomputes) const override;
};

template <class Config>
concept EncoderDecoderFamily = TransformerFamily<Config> && std::derived_from<Config, EncoderDecoderConfig>;

/// Earlier forms of the key `architecture`.
template <class V>
void describe_former_architecture(V& v, EncoderDecoderConfig& c) {
  v.template formerly<bool>("is_encoder_decoder", "architecture", [&](bool both) {
    c.architecture = both ? Architecture::encoder_decoder : Architecture::encoder;
    return "";
  });
  describe_former_architecture(v, static_cast<TransformerConfig&>(c));
}

/// The options of every encoder-decoder family.
template <class V, EncoderDecoderFamily Config>
void describe_encoder_decoder(V& v, Config& c) {
  describe_transformer(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("shared_embeddings", c.shared_embeddings,
    "encoder and decoder share one token embedding; false = separate ones, and the head is tied to the decoder's");
  v("num_decoder_layers", c.num_decoder_layers, "blocks in the decoder; 0 = num_hidden_layers",
    in_range(0, limits::layers));
  v("decoder_attention_heads", c.decoder_attention_heads, "attention heads of the decoder; 0 = num_attention_heads",
    in_range(0, limits::heads));
  v("decoder_ffn_dim", c.decoder_ffn_dim, "width inside the decoder's feed-forward layer; 0 = intermediate_size",
    in_range(0, limits::inner_width));
  v("decoder_start_token_id", c.decoder_start_token_id,
    "id of the decoder's first input token; set from the tokenizer when training", in_range(0, limits::tokens));
  v("forced_bos_token_id", c.forced_bos_token_id, "id that every generated text begins with; -1 = none",
    in_range(-1, limits::tokens));
  v("forced_eos_token_id", c.forced_eos_token_id,
    "id that ends a generated text which reaches its maximum length; -1 = none", in_range(-1, limits::tokens));
}

/// The options of an encoder-decoder family that adds none of its own.
template <class V, EncoderDecoderFamily Config>
void describe(V& v, Config& c) {
  describe_encoder_decoder(v, c);
  v("scale_embedding", c.scale_embedding, "token embeddings are multiplied by sqrt(hidden_size)");
}

}  // namespace cloze
