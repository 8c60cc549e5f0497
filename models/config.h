#pragma once
// What networks are made of, as it stands in YAML: a stack of blocks, and the backbones that are built of stacks. Field
// names are those of Hugging Face's config.json. The families that fill them in stand in families/.
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "models/attention/config.h"
#include "models/layers/config.h"

namespace cloze {

/// The largest sizes: beyond any model, and so small that no product of them is too large for 64 bits.
namespace most {
inline constexpr int64_t tokens = 1 << 28;  ///< of a vocabulary, or of a text
inline constexpr int64_t width = 1 << 18;
inline constexpr int64_t inner_width = 1 << 22;
inline constexpr int64_t heads = 1 << 14;
inline constexpr int64_t head_width = 1 << 14;
inline constexpr int64_t layers = 1 << 12;
}  // namespace most

/// Which stacks a model has and what their tokens attend to.
enum class Architecture { encoder, decoder, encoder_decoder, two_stream };
constexpr auto choices(Architecture) {
  using enum Architecture;
  return std::array{Choice{encoder, "encoder", "one bidirectional stack"},
                    Choice{decoder, "decoder", "one causal stack"},
                    Choice{encoder_decoder, "encoder_decoder",
                           "a bidirectional stack, and a causal one that attends to its states too"},
                    Choice{two_stream, "two_stream", "a content and a query stream over relative positions (xlnet)"}};
}

/// Where norms stand in a block.
enum class NormPlacement { post, pre };
constexpr auto choices(NormPlacement) {
  return std::array{Choice{NormPlacement::post, "post", "after each sum with the residual, as in BERT"},
                    Choice{NormPlacement::pre, "pre",
                           "before attention and before the feed-forward layer, and after the last block"}};
}

enum class FeedForward { plain, gated };
constexpr auto choices(FeedForward) {
  return std::array{Choice{FeedForward::plain, "plain", "activation(x W1) W2"},
                    Choice{FeedForward::gated, "gated", "(activation(x W1) * x W3) W2, GEGLU and its kin"}};
}

/// What the layers of a group share.
enum class Sharing { all, attention, ffn, none };
constexpr auto choices(Sharing) {
  return std::array{Choice{Sharing::all, "all"}, Choice{Sharing::attention, "attention", "attention alone"},
                    Choice{Sharing::ffn, "ffn", "feed-forward layers alone"}, Choice{Sharing::none, "none"}};
}

/// A stack of blocks.
struct StackConfig : AttentionSizes {
  int64_t num_hidden_layers = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  FeedForward feed_forward = FeedForward::plain;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double activation_dropout = 0;
  NormPlacement norm_place = NormPlacement::post;
  NormKind norm_kind = NormKind::layer;
  double layer_norm_eps = 1e-12;
  int64_t num_hidden_groups = 0;  // 0: every layer has weights of its own
  int64_t inner_group_num = 1;
  Sharing share = Sharing::all;
  int64_t relative_attention_num_buckets = 0;
  int64_t relative_attention_max_distance = 128;
  // ---- facts, not options
  bool causal = false;           ///< a token attends to itself and to those before it
  bool cross_attention = false;  ///< blocks attend to the states of another stack
  bool final_dropout = false;    ///< after the norm of the last pre-norm block
};

/// The distribution that weights are drawn from.
enum class Initializer { truncated_normal, normal, normal_scaled, fan_in, xavier };
constexpr auto choices(Initializer) {
  using enum Initializer;
  return std::array{
      Choice{truncated_normal, "truncated_normal", "cut at two standard deviations"}, Choice{normal, "normal"},
      Choice{normal_scaled, "normal_scaled",
             "normal, projections into the residual stream divided by sqrt(2 layers), as in GPT-2"},
      Choice{fan_in, "fan_in", "T5's deviations, 1 / sqrt(inputs), that of queries also divided by sqrt(d_kv)"},
      Choice{xavier, "xavier", "uniform, 1 / sqrt of the mean of inputs and outputs of each matrix"}};
}

/// The bias of each token's logit.
enum class LogitsBias { none, fixed, trained };

/// What every backbone has. The members below the line are facts of a family, not options.
struct BackboneConfig : StackConfig {
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
  bool embedding_norm = true;            ///< a norm after the sum of embeddings
  bool positions_after_padding = false;  ///< position ids count real tokens from pad_token_id + 1 on; padding has
                                         ///< position id pad_token_id
  int64_t position_offset = 0;           ///< rows of the position table before that of the first position
  bool always_projects = false;          ///< a projection from embedding to hidden width even where they are equal
  bool glorot_projection = false;  ///< that projection starts as Glorot says where the others are truncated_normal
  // ---- heads
  bool bare_pooler = true;  ///< an encoder without objectives keeps its pooler, as Hugging Face's class does
  bool gelu_head = false;   ///< the prediction head uses exact GELU, whatever hidden_act is
  LogitsBias logits_bias = LogitsBias::none;
  bool scale_decoder_outputs = false;  ///< hidden states are divided by sqrt(hidden_size) before the token table
  // ---- texts
  bool texts_begin = false;  ///< texts begin with [CLS] (<s>), those that are read and those that are written

  bool is_encoder() const { return architecture == Architecture::encoder; }
  bool is_decoder() const { return architecture == Architecture::decoder; }
  bool is_encoder_decoder() const { return architecture == Architecture::encoder_decoder; }
  bool is_two_stream() const { return architecture == Architecture::two_stream; }
  /// The model generates text from left to right.
  bool is_generative() const { return is_decoder() || is_encoder_decoder(); }
  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  static constexpr int64_t any_length = int64_t{1} << 40;  ///< more than any text has
  /// Tokens of the longest input.
  int64_t longest_input() const {
    const bool sized = position_embeddings != PositionEmbeddings::none ||
                       std::holds_alternative<LinformerAttention>(attention) ||
                       std::holds_alternative<BigBirdAttention>(attention);
    return sized ? max_position_embeddings - (positions_after_padding ? pad_token_id + 1 : 0) : any_length;
  }
};

/// What a decoder reads first, of the special tokens of the tokenizer that it is trained with.
enum class DecoderStart { padding, end_of_text, beginning_of_text };

/// Ids that a decoder beside an encoder reads first, and those that it is made to write.
struct DecodingIds {
  int64_t decoder_start_token_id = 0;
  int64_t forced_bos_token_id = -1;
  int64_t forced_eos_token_id = -1;
  bool decoder_starts_with_last = false;  ///< the decoder reads the last target first, not decoder_start_token_id
};

/// Families of an encoder with a decoder. One of the two stacks alone is an `architecture` of theirs too.
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

/// What tokens of two streams attend to.
enum class AttentionDirection { bi, uni };
constexpr auto choices(AttentionDirection) {
  return std::array{Choice{AttentionDirection::bi, "bi", "bidirectional"},
                    Choice{AttentionDirection::uni, "uni", "causal"}};
}

/// Two streams over relative positions, with a recurrence memory.
struct TwoStreamConfig : BackboneConfig {
  AttentionDirection attn_type = AttentionDirection::bi;
  int64_t clamp_len = -1;
  int64_t mem_len = 0;
  int64_t reuse_len = 0;
  bool bi_data = false;
  bool same_length = false;

  TwoStreamConfig() { architecture = Architecture::two_stream; }
  /// Training carries the memory of a segment to the next one.
  bool carries_memory() const { return mem_len > 0 && reuse_len > 0; }
};

/// The values of `hidden_act`, by the names of transformers' ACT2FN.
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

/// The initialisation of a code.
inline void initialise(BackboneConfig& c, Initializer initializer, bool freeze_pad_embedding) {
  c.initializer = initializer;
  c.freeze_pad_embedding = freeze_pad_embedding;
}

/// The lines of every backbone.
template <class V, class Config>
void describe_backbone(V& v, Config& c) {
  v.like(c, "initialisation as in that code",
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
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = as many as the tokenizer has",
    in_range(0, most::tokens));
  v("hidden_size", c.hidden_size, "width of the residual stream", in_range(1, most::width));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", in_range(0, most::layers));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size", in_range(1, most::heads));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", in_range(1, most::inner_width));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head",
    one_of(activation_names));
  v("feed_forward", c.feed_forward, "the feed-forward layer");
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward",
    in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities",
    in_range(0, 1, open_end));
  v("max_position_embeddings", c.max_position_embeddings,
    "rows of the position table: the longest sequence [tokens], for roberta and longformer with pad_token_id + 1 rows "
    "on top",
    in_range(1, most::tokens));
  v("position_embeddings", c.position_embeddings, "the position table");
  v("relative_positions", c.relative_positions,
    "distances up to this one have vectors that are added to keys and values in every layer (Shaw et al. 2018); 0 = "
    "none",
    in_range(0, 1 << 14));
  v("type_vocab_size", c.type_vocab_size, "segment types", in_range(1, 1 << 20));
  v("initializer_range", c.initializer_range, "standard deviation of the initial weights", in_range(0, 10));
  v("initializer", c.initializer, "the initial distribution");
  v("norm_place", c.norm_place, "where norms stand in a block");
  v("norm_kind", c.norm_kind, "the norm");
  v("layer_norm_eps", c.layer_norm_eps, "added to the variance in every norm", in_range(0, 1));
  v("pad_token_id", c.pad_token_id, "id of the padding token; set from the tokenizer when training",
    in_range(0, most::tokens));
  v("freeze_pad_embedding", c.freeze_pad_embedding,
    "padding row starts at zero and gets no gradient from the lookup, as torch's padding_idx does");
  v("tie_word_embeddings", c.tie_word_embeddings, "prediction head shares the token embedding");
  v("architecture", c.architecture, "the stacks, and what their tokens attend to");
  if constexpr (std::derived_from<Config, EncoderDecoderConfig>)
    v.template formerly<bool>("is_encoder_decoder", "architecture", [&](bool both) {
      c.architecture = both ? Architecture::encoder_decoder : Architecture::encoder;
      return "";
    });
  v.template formerly<bool>("is_decoder", "architecture", [&](bool causal) {
    if (causal && c.is_encoder_decoder())
      return "a family of two stacks; leave it out, or choose architecture: decoder";
    if (causal && c.is_two_stream()) return "not for two streams; leave it out, attn_type: uni is causal";
    if (c.is_encoder() || c.is_decoder()) c.architecture = causal ? Architecture::decoder : Architecture::encoder;
    return "";
  });
  v("bos_token_id", c.bos_token_id,
    "id that begins a text, of a model that was imported without a tokenizer and is exported again; -1 = not known",
    in_range(-1, most::tokens));
  v("eos_token_id", c.eos_token_id,
    "of a generative model: id that ends a text; -1 = none; set from the tokenizer when training",
    in_range(-1, most::tokens));
  v("attention", c.attention, "which keys a query attends to");
}
/// The lines of every family of an encoder with a decoder.
template <class V, class Config>
void describe_encoder_decoder(V& v, Config& c) {
  describe_backbone(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("shared_embeddings", c.shared_embeddings,
    "encoder and decoder read one token table; false = each has its own, and the head is tied to the decoder's");
  v("num_decoder_layers", c.num_decoder_layers, "blocks of the decoder; 0 = num_hidden_layers",
    in_range(0, most::layers));
  v("decoder_attention_heads", c.decoder_attention_heads, "heads of the decoder; 0 = num_attention_heads",
    in_range(0, most::heads));
  v("decoder_ffn_dim", c.decoder_ffn_dim, "width inside the decoder's feed-forward layer; 0 = intermediate_size",
    in_range(0, most::inner_width));
  v("decoder_start_token_id", c.decoder_start_token_id,
    "id that the decoder reads first; set from the tokenizer when training", in_range(0, most::tokens));
  v("forced_bos_token_id", c.forced_bos_token_id, "id that every written text begins with; -1 = none",
    in_range(-1, most::tokens));
  v("forced_eos_token_id", c.forced_eos_token_id, "id that a text ends with that is cut off at its longest; -1 = none",
    in_range(-1, most::tokens));
}

/// The lines of a family without options of its own.
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
