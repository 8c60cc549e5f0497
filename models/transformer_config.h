#pragma once
// The model options of the YAML config: a stack of blocks, and a backbone, which is a stack with embeddings and heads.
// Field names are those of Hugging Face's config.json. Architectures of more than one stack are in
// encoder_decoder_config.h and two_stream_config.h; parts that some families add to the stack, in stack_parts.h; the
// model families, which set the defaults, in families/.
#include <concepts>
#include <cstdint>
#include <string>

#include "models/attention/sizes.h"
#include "models/layers/config.h"

namespace cloze {

/// Upper limits of sizes: beyond any model, and small enough that no product of them overflows 64 bits.
namespace limits {
inline constexpr int64_t tokens = 1 << 28;  ///< in a vocabulary, or in a text
inline constexpr int64_t width = 1 << 18;
inline constexpr int64_t inner_width = 1 << 22;
inline constexpr int64_t heads = 1 << 14;
inline constexpr int64_t head_width = 1 << 14;
inline constexpr int64_t layers = 1 << 12;
}  // namespace limits

/// The stacks of a model, and what their tokens attend to.
enum class Architecture { encoder, decoder, encoder_decoder, two_stream };
constexpr auto choices(Architecture) {
  using enum Architecture;
  return std::array{Choice{encoder, "encoder", "one bidirectional stack"},
                    Choice{decoder, "decoder", "one causal stack"},
                    Choice{encoder_decoder, "encoder_decoder",
                           "a bidirectional stack, and a causal one with cross-attention to its output"},
                    Choice{two_stream, "two_stream", "a content and a query stream over relative positions"}};
}

/// Post-norm or pre-norm blocks.
enum class NormPlacement { post, pre };
constexpr auto choices(NormPlacement) {
  return std::array{
      Choice{NormPlacement::post, "post", "after each residual connection, as in BERT"},
      Choice{NormPlacement::pre, "pre",
             "before attention and before the feed-forward layer, with a final norm after the last block"}};
}

/// A stack of blocks; the parts that some families add are in stack_parts.h.
struct StackConfig : AttentionSizes, FeedForwardConfig, NormConfig {
  int64_t num_hidden_layers = 12;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  NormPlacement norm_place = NormPlacement::post;
  bool first_attention_norm = true;  ///< pre-norm: false leaves out the norm before the first block's attention
  bool final_dropout = false;        ///< dropout after the final norm
  // ---- set by the backbone
  bool causal = false;           ///< a token attends to itself and to earlier tokens
  bool cross_attention = false;  ///< blocks attend to the output of another stack
};

/// The distribution of the initial weights.
enum class Initializer { truncated_normal, normal, normal_scaled, truncated_normal_scaled, fan_in, xavier };
constexpr auto choices(Initializer) {
  using enum Initializer;
  return std::array{
      Choice{truncated_normal, "truncated_normal", "truncated at two standard deviations"},
      Choice{normal, "normal"},
      Choice{normal_scaled, "normal_scaled",
             "normal, projections into the residual stream divided by sqrt(2 layers), as in GPT-2"},
      Choice{truncated_normal_scaled, "truncated_normal_scaled",
             "normal_scaled truncated at two standard deviations, the dense layer of the prediction head divided too, "
             "as in ModernBERT"},
      Choice{fan_in, "fan_in", "T5's deviations, 1 / sqrt(inputs), for query projections also divided by sqrt(d_kv)"},
      Choice{xavier, "xavier", "uniform, with deviation 1 / sqrt of the mean of inputs and outputs of each matrix"}};
}

/// A normal distribution truncated at two standard deviations.
constexpr bool is_truncated(Initializer initializer) {
  return initializer == Initializer::truncated_normal || initializer == Initializer::truncated_normal_scaled;
}

/// The texts that rows and prompts are made of.
struct TextConfig {
  int64_t bos_token_id = -1;
  int64_t eos_token_id = 1;
  bool prepend_bos = false;  ///< source and target texts begin with [CLS] (<s>)
};

/// The options and facts of a backbone: those of its parts, which read their own struct, and of the whole.
/// Every family has those that `describe_backbone` names as options; of the others, a family has those that its own
/// `describe` names, and the rest are facts that its constructor sets.
struct BackboneConfig : StackConfig, EmbeddingConfig, TokenHeadConfig, NextTokenHeadConfig, TextConfig {
  Architecture architecture = Architecture::encoder;
  std::string like;
  double initializer_range = 0.02;
  Initializer initializer = Initializer::truncated_normal;
  bool tie_word_embeddings = true;

  bool is_encoder() const { return architecture == Architecture::encoder; }
  bool is_decoder() const { return architecture == Architecture::decoder; }
  bool is_encoder_decoder() const { return architecture == Architecture::encoder_decoder; }
  bool is_two_stream() const { return architecture == Architecture::two_stream; }
  /// The model generates text autoregressively.
  bool is_generative() const { return is_decoder() || is_encoder_decoder(); }
  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  static constexpr int64_t unlimited_length = int64_t{1} << 40;  ///< longer than any text
  /// Maximum input length in tokens.
  int64_t max_input_length() const {
    const bool sized = positions.table != PositionTable::none || facts_of(positions.relative).bounds_length ||
                       bounds_length(attention);
    const bool after_padding = positions_after_padding && !std::holds_alternative<Rotary>(positions.relative);
    return sized ? max_position_embeddings - (after_padding ? pad_token_id + 1 : 0) : unlimited_length;
  }
};
/// A family: BackboneConfig with other defaults, and options of its own.
template <class Config>
concept BackboneFamily = std::derived_from<Config, BackboneConfig>;

/// The initialisation of a published implementation.
inline void initialise(BackboneConfig& c, Initializer initializer, bool freeze_pad_embedding) {
  c.initializer = initializer;
  c.freeze_pad_embedding = freeze_pad_embedding;
}

/// The options of every backbone, in four parts.
template <class V, BackboneFamily Config>
void describe_presets(V& v, Config& c) {
  v.like(c, "the initialisation of a published implementation",
         {{"google-bert", [](Config& m) { initialise(m, Initializer::truncated_normal, false); }},
          {"albert", [](Config& m) { initialise(m, Initializer::truncated_normal, false); }},
          {"electra", [](Config& m) { initialise(m, Initializer::truncated_normal, false); }},
          {"huggingface", [](Config& m) { initialise(m, Initializer::normal, true); }},
          {"fairseq-roberta", [](Config& m) { initialise(m, Initializer::normal, true); }},
          {"bart", [](Config& m) { initialise(m, Initializer::normal, true); }},
          {"spanbert", [](Config& m) { initialise(m, Initializer::normal, false); }},
          {"xlnet", [](Config& m) { initialise(m, Initializer::normal, false); }},
          {"megatron", [](Config& m) { initialise(m, Initializer::normal_scaled, false); }},
          {"t5", [](Config& m) { initialise(m, Initializer::fan_in, false); }}});
}
template <class V>
void describe_sizes(V& v, BackboneConfig& c) {
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = the size of the tokenizer",
    in_range(0, limits::tokens));
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
void describe_positions(V& v, BackboneConfig& c) {
  v("max_position_embeddings", c.max_position_embeddings,
    "rows of the position table: the maximum sequence length [tokens], plus pad_token_id + 1 where position ids start "
    "after the padding id",
    in_range(1, limits::tokens));
  describe_keys(v, c.positions);
  v("type_vocab_size", c.type_vocab_size, "number of segment types", in_range(1, 1 << 20));
}
template <class V>
void describe_weights(V& v, BackboneConfig& c) {
  v("initializer_range", c.initializer_range, "standard deviation of the initial weights", in_range(0, 10));
  v("initializer", c.initializer, "distribution of the initial weights");
  v("norm_place", c.norm_place, "post-norm or pre-norm blocks");
  v("norm_kind", c.norm_kind, "the norm");
  v("layer_norm_eps", c.layer_norm_eps, "added to the variance in every norm", in_range(0, 1));
  v("pad_token_id", c.pad_token_id, "id of the padding token; set from the tokenizer when training",
    in_range(0, limits::tokens));
  v("freeze_pad_embedding", c.freeze_pad_embedding,
    "the padding row starts at zero and gets no gradient from the lookup, as with torch's padding_idx");
  v("tie_word_embeddings", c.tie_word_embeddings, "the prediction head is tied to the token embedding");
}
/// Earlier forms of the key `architecture`.
template <class V>
void describe_former_architecture(V& v, BackboneConfig& c) {
  v.template formerly<bool>("is_decoder", "architecture", [&](bool causal) {
    if (causal && c.is_encoder_decoder())
      return "an encoder-decoder family; leave it out, or choose architecture: decoder";
    if (causal && c.is_two_stream()) return "not for two-stream models; leave it out; attn_type: uni is causal";
    if (c.is_encoder() || c.is_decoder()) c.architecture = causal ? Architecture::decoder : Architecture::encoder;
    return "";
  });
}

/// The options of every backbone.
template <class V, BackboneFamily Config>
void describe_backbone(V& v, Config& c) {
  describe_presets(v, c);
  describe_sizes(v, c);
  describe_positions(v, c);
  describe_weights(v, c);
  v("architecture", c.architecture, "the stacks, and what their tokens attend to");
  describe_former_architecture(v, c);
  v("bos_token_id", c.bos_token_id,
    "id of the token that begins a text, kept for the export of a model imported without a tokenizer; -1 = unknown",
    in_range(-1, limits::tokens));
  v("eos_token_id", c.eos_token_id,
    "generative models: id of the token that ends a text; -1 = none; set from the tokenizer when training",
    in_range(-1, limits::tokens));
  v("attention", c.attention, "which keys a query attends to");
}

/// The options of a family that adds none of its own.
template <class V, BackboneFamily Config>
void describe(V& v, Config& c) {
  describe_backbone(v, c);
}

}  // namespace cloze
