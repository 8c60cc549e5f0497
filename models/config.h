#pragma once
// The model options of the YAML config: a stack of blocks, and the backbones built of stacks. Field names are those of
// Hugging Face's config.json. The model families, which set the defaults, are in families/.
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "models/attention/config.h"
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
                    Choice{two_stream, "two_stream", "a content and a query stream over relative positions (xlnet)"}};
}

/// Post-norm or pre-norm blocks.
enum class NormPlacement { post, pre };
constexpr auto choices(NormPlacement) {
  return std::array{
      Choice{NormPlacement::post, "post", "after each residual connection, as in BERT"},
      Choice{NormPlacement::pre, "pre",
             "before attention and before the feed-forward layer, with a final norm after the last block"}};
}

enum class FeedForward { plain, gated };
constexpr auto choices(FeedForward) {
  return std::array{Choice{FeedForward::plain, "plain", "activation(x W1) W2"},
                    Choice{FeedForward::gated, "gated", "(activation(x W1) * x W3) W2, as GEGLU and SwiGLU"}};
}

/// The parameters that the layers of a group share.
enum class Sharing { all, attention, ffn, none };
constexpr auto choices(Sharing) {
  return std::array{Choice{Sharing::all, "all"}, Choice{Sharing::attention, "attention", "attention only"},
                    Choice{Sharing::ffn, "ffn", "feed-forward layers only"}, Choice{Sharing::none, "none"}};
}

/// A stack of blocks.
struct StackConfig : AttentionSizes, NormConfig {
  int64_t num_hidden_layers = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  FeedForward feed_forward = FeedForward::plain;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double activation_dropout = 0;
  NormPlacement norm_place = NormPlacement::post;
  int64_t num_hidden_groups = 0;  // 0: no sharing between layers
  int64_t inner_group_num = 1;
  Sharing share = Sharing::all;
  int64_t relative_attention_num_buckets = 0;
  int64_t relative_attention_max_distance = 128;
  // ---- set by the code, not options
  bool causal = false;               ///< a token attends to itself and to earlier tokens
  bool cross_attention = false;      ///< blocks attend to the output of another stack
  bool final_dropout = false;        ///< dropout after the final norm
  bool mlp_bias = true;              ///< feed-forward layers have biases
  bool first_attention_norm = true;  ///< pre-norm: false leaves out the norm before the first block's attention
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

/// The bias of the output logits.
enum class LogitsBias { none, fixed, trained };

/// A normal distribution truncated at two standard deviations.
constexpr bool is_truncated(Initializer initializer) {
  return initializer == Initializer::truncated_normal || initializer == Initializer::truncated_normal_scaled;
}

/// The options of every backbone. The members below the first line are properties of a family, not options.
struct BackboneConfig : StackConfig, TokenHeadConfig {
  Architecture architecture = Architecture::encoder;
  std::string like;
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  Initializer initializer = Initializer::truncated_normal;
  int64_t pad_token_id = 0;
  int64_t bos_token_id = -1;
  int64_t eos_token_id = 1;
  bool freeze_pad_embedding = false;
  bool tie_word_embeddings = true;
  bool prefix_lm = false;
  bool pooler = false;
  bool scale_embedding = false;
  // ---- embeddings
  bool token_types = true;
  bool embedding_norm = true;              ///< a norm after the sum of the embeddings
  bool positions_after_padding = false;    ///< position ids count real tokens from pad_token_id + 1 on; padding has
                                           ///< position id pad_token_id (fairseq)
  int64_t position_offset = 0;             ///< row of the position table that position 0 uses
  bool always_project_embeddings = false;  ///< even if embedding width and hidden width are equal
  /// With initializer truncated_normal, the embedding projection is Xavier (Glorot) uniform.
  bool xavier_embedding_projection = false;
  // ---- heads
  bool base_model_has_pooler = true;  ///< without objectives there is a pooler, as in Hugging Face's base class
  bool gelu_head = false;             ///< the prediction head uses exact GELU, whatever hidden_act is
  LogitsBias logits_bias = LogitsBias::none;
  bool scale_decoder_outputs = false;  ///< hidden states are divided by sqrt(hidden_size) before the LM head
  // ---- texts
  bool prepend_bos = false;  ///< source and target texts begin with [CLS] (<s>)

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
    const bool sized = position_embeddings != PositionEmbeddings::none ||
                       std::holds_alternative<LinformerAttention>(attention) ||
                       std::holds_alternative<BigBirdAttention>(attention);
    const bool after_padding = positions_after_padding && position_embeddings != PositionEmbeddings::rotary;
    return sized ? max_position_embeddings - (after_padding ? pad_token_id + 1 : 0) : unlimited_length;
  }
};

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
struct EncoderDecoderConfig : BackboneConfig, DecodingIds {
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
};

/// The direction of attention in a two-stream model.
enum class AttentionDirection { bi, uni };
constexpr auto choices(AttentionDirection) {
  return std::array{Choice{AttentionDirection::bi, "bi", "bidirectional"},
                    Choice{AttentionDirection::uni, "uni", "causal"}};
}

/// Two-stream attention with relative positions and recurrence memory (mems).
struct TwoStreamConfig : BackboneConfig {
  AttentionDirection attn_type = AttentionDirection::bi;
  int64_t clamp_len = -1;
  int64_t mem_len = 0;
  int64_t reuse_len = 0;
  bool bi_data = false;
  bool same_length = false;

  TwoStreamConfig() { architecture = Architecture::two_stream; }
  /// Training carries the mems of a segment to the next one.
  bool carries_mems() const { return mem_len > 0 && reuse_len > 0; }
};

/// The values of `hidden_act`: names of transformers' ACT2FN.
inline const std::vector<std::string> activation_names = {"gelu",
                                                          "gelu_python",
                                                          "gelu_new",
                                                          "gelu_pytorch_tanh",
                                                          "gelu_python_tanh",
                                                          "gelu_accurate",
                                                          "gelu_fast",
                                                          "quick_gelu",
                                                          "gelu_10",
                                                          "relu",
                                                          "relu2",
                                                          "relu6",
                                                          "leaky_relu",
                                                          "silu",
                                                          "swish",
                                                          "mish",
                                                          "tanh",
                                                          "sigmoid",
                                                          "laplace",
                                                          "linear"};

/// The initialisation of a published implementation.
inline void initialise(BackboneConfig& c, Initializer initializer, bool freeze_pad_embedding) {
  c.initializer = initializer;
  c.freeze_pad_embedding = freeze_pad_embedding;
}

/// The options of every backbone.
template <class V, class Config>
void describe_backbone(V& v, Config& c) {
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
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = the size of the tokenizer",
    in_range(0, limits::tokens));
  v("hidden_size", c.hidden_size, "width of the residual stream", in_range(1, limits::width));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", in_range(0, limits::layers));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size",
    in_range(1, limits::heads));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", in_range(1, limits::inner_width));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head",
    one_of(activation_names));
  v("feed_forward", c.feed_forward, "the feed-forward layer");
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward",
    in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities",
    in_range(0, 1, open_end));
  v("max_position_embeddings", c.max_position_embeddings,
    "rows of the position table: the maximum sequence length [tokens], plus pad_token_id + 1 for roberta and "
    "longformer",
    in_range(1, limits::tokens));
  v("position_embeddings", c.position_embeddings, "the position embeddings");
  v("rope_theta", c.rope_theta, "base of the wavelengths of rotary positions", in_range(1, 1e12));
  v("relative_positions", c.relative_positions,
    "maximum distance of relative position embeddings, which are added to keys and values in every layer (Shaw et al. "
    "2018); 0 = none",
    in_range(0, 1 << 14));
  v("type_vocab_size", c.type_vocab_size, "number of segment types", in_range(1, 1 << 20));
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
  v("architecture", c.architecture, "the stacks, and what their tokens attend to");
  if constexpr (std::derived_from<Config, EncoderDecoderConfig>)
    v.template formerly<bool>("is_encoder_decoder", "architecture", [&](bool both) {
      c.architecture = both ? Architecture::encoder_decoder : Architecture::encoder;
      return "";
    });
  v.template formerly<bool>("is_decoder", "architecture", [&](bool causal) {
    if (causal && c.is_encoder_decoder())
      return "an encoder-decoder family; leave it out, or choose architecture: decoder";
    if (causal && c.is_two_stream()) return "not for two-stream models; leave it out; attn_type: uni is causal";
    if (c.is_encoder() || c.is_decoder()) c.architecture = causal ? Architecture::decoder : Architecture::encoder;
    return "";
  });
  v("bos_token_id", c.bos_token_id,
    "id of the token that begins a text, kept for the export of a model imported without a tokenizer; -1 = unknown",
    in_range(-1, limits::tokens));
  v("eos_token_id", c.eos_token_id,
    "generative models: id of the token that ends a text; -1 = none; set from the tokenizer when training",
    in_range(-1, limits::tokens));
  v("attention", c.attention, "which keys a query attends to");
}
/// The options of every encoder-decoder family.
template <class V, class Config>
void describe_encoder_decoder(V& v, Config& c) {
  describe_backbone(v, c);
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

/// The options of a family that adds none of its own.
template <class V, std::derived_from<BackboneConfig> Config>
void describe(V& v, Config& c) {
  if constexpr (std::derived_from<Config, EncoderDecoderConfig>) {
    describe_encoder_decoder(v, c);
    v("scale_embedding", c.scale_embedding, "token embeddings are multiplied by sqrt(hidden_size)");
  } else {
    describe_backbone(v, c);
  }
}

}  // namespace cloze
