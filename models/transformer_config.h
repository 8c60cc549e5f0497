#pragma once
// The model options of the YAML config: a stack of blocks, and a Transformer, which is a backbone of such stacks.
// Architectures of more than one stack are in encoder_decoder_config.h and two_stream_config.h; parts that some
// families add to the stack, in stack_parts.h; the model families, which set the defaults, in families/.
#include <concepts>

#include "models/attention/sizes.h"
#include "models/backbone_config.h"

namespace cloze {

/// Post-norm or pre-norm blocks.
enum class NormPlacement { post, pre };
constexpr auto choices(NormPlacement) {
  return std::array{
      Choice{NormPlacement::post, "post", "after each residual connection, as in BERT"},
      Choice{NormPlacement::pre, "pre",
             "before attention and before the feed-forward layer, with a final norm after the last block"}};
}

/// A stack of blocks; the parts that some families add are in stack_parts.h.
struct StackConfig : AttentionSizes, FeedForwardConfig {
  double attention_probs_dropout_prob = 0.1;
  NormPlacement norm_place = NormPlacement::post;
  bool first_attention_norm = true;  ///< pre-norm: false leaves out the norm before the first block's attention
  bool final_dropout = false;        ///< dropout after the final norm
  // ---- set by the backbone
  bool causal = false;           ///< a token attends to itself and to earlier tokens
  bool cross_attention = false;  ///< blocks attend to the output of another stack
};

/// A backbone of attention. Every family of Transformers has the options that `describe_transformer` names; of the
/// others, a family has those that its own `describe` names, and the rest are facts that its constructor sets.
struct TransformerConfig : BackboneConfig, StackConfig {
  int64_t max_input_length() const override;
  int64_t longest_row(double numbers) const override;
  int64_t widest_activation() const override;
  double layer_weights() const override;
  double embedding_weights() const override;
  double least_activations(bool recomputes) const override;
  double activations(const std::vector<RowSizes>& rows, bool recomputes) const override;
  std::string sizes() const override;

 protected:
  /// Blocks with weights of their own.
  virtual int64_t own_blocks() const { return num_hidden_layers; }
};
/// A family: TransformerConfig with other defaults, and options of its own.
template <class Config>
concept TransformerFamily = std::derived_from<Config, TransformerConfig>;

/// The options of every Transformer, in four parts.
template <class V, TransformerFamily Config>
void describe_presets(V& v, Config& c) {
  v.like(c, "the initialisation of a published implementation",
         {{"google-bert", {{"initializer", "truncated_normal"}, {"freeze_pad_embedding", "false"}}},
          {"albert", {{"initializer", "truncated_normal"}, {"freeze_pad_embedding", "false"}}},
          {"electra", {{"initializer", "truncated_normal"}, {"freeze_pad_embedding", "false"}}},
          {"huggingface", {{"initializer", "normal"}, {"freeze_pad_embedding", "true"}}},
          {"fairseq-roberta", {{"initializer", "normal"}, {"freeze_pad_embedding", "true"}}},
          {"bart", {{"initializer", "normal"}, {"freeze_pad_embedding", "true"}}},
          {"spanbert", {{"initializer", "normal"}, {"freeze_pad_embedding", "false"}}},
          {"xlnet", {{"initializer", "normal"}, {"freeze_pad_embedding", "false"}}},
          {"megatron", {{"initializer", "normal_scaled"}, {"freeze_pad_embedding", "false"}}},
          {"t5", {{"initializer", "fan_in"}, {"freeze_pad_embedding", "false"}}}});
}
template <class V>
void describe_sizes(V& v, TransformerConfig& c) {
  describe_vocabulary(v, c);
  v("hidden_size", c.hidden_size, "width of the residual stream", in_range(1, limits::width));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", in_range(0, limits::layers));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size",
    in_range(1, limits::heads));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", in_range(1, limits::inner_width));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head");
  v("feed_forward", c.feed_forward, "the feed-forward layer");
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward",
    in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities",
    in_range(0, 1, open_end));
}
template <class V>
void describe_positions(V& v, TransformerConfig& c) {
  v("max_position_embeddings", c.max_position_embeddings,
    "rows of the position table: the maximum sequence length [tokens], plus pad_token_id + 1 where position ids start "
    "after the padding id",
    in_range(1, limits::tokens));
  describe_keys(v, c.positions);
  v("type_vocab_size", c.type_vocab_size, "number of segment types", in_range(1, 1 << 20));
}
template <class V>
void describe_weights(V& v, TransformerConfig& c) {
  describe_initial_weights(v, c);
  v("norm_place", c.norm_place, "post-norm or pre-norm blocks");
  v("norm_kind", c.norm_kind, "the norm");
  v("layer_norm_eps", c.layer_norm_eps, "added to the variance in every norm", in_range(0, 1));
  describe_padding(v, c);
  v("freeze_pad_embedding", c.freeze_pad_embedding,
    "the padding row starts at zero and gets no gradient from the lookup, as with torch's padding_idx");
  describe_tying(v, c);
}
/// Earlier forms of the key `architecture`.
template <class V>
void describe_former_architecture(V& v, TransformerConfig& c) {
  v.template formerly<bool>("is_decoder", "architecture", [&](bool causal) {
    if (causal && c.is_encoder_decoder())
      return "an encoder-decoder family; leave it out, or choose architecture: decoder";
    if (causal && c.is_two_stream()) return "not for two-stream models; leave it out; attn_type: uni is causal";
    if (c.is_encoder() || c.is_decoder()) c.architecture = causal ? Architecture::decoder : Architecture::encoder;
    return "";
  });
}

/// The options of every Transformer.
template <class V, TransformerFamily Config>
void describe_transformer(V& v, Config& c) {
  describe_presets(v, c);
  describe_sizes(v, c);
  describe_positions(v, c);
  describe_weights(v, c);
  v("architecture", c.architecture, "the stacks, and what their tokens attend to");
  describe_former_architecture(v, c);
  describe_text_ids(v, c);
  v("attention", c.attention, "which keys a query attends to");
}

/// The options of a family that adds none of its own.
template <class V, TransformerFamily Config>
void describe(V& v, Config& c) {
  describe_transformer(v, c);
}

}  // namespace cloze
