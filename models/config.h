#pragma once
// What a network is made of, as it stands in YAML. Field names are those of Hugging Face's config.json.
#include <concepts>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/attention_config.h"

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

/// A stack of blocks.
struct StackConfig {
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  std::string feed_forward = "plain";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  std::string norm_place = "post";
  std::string norm_kind = "layer";
  double layer_norm_eps = 1e-12;
  int64_t max_position_embeddings = 512;
  std::string position_embeddings = "learned";
  int64_t relative_positions = 0;
  bool is_decoder = false;
  bool prefix_lm = false;
  AttentionConfig attention{};
  int64_t num_hidden_groups = 0;  // 0: every layer has weights of its own
  int64_t inner_group_num = 1;
  std::string share = "all";
  double activation_dropout = 0;
  int64_t d_kv = 0;
  int64_t relative_attention_num_buckets = 0;
  int64_t relative_attention_max_distance = 128;
  // ---- facts of a family
  bool linear_bias = true;       ///< products of blocks have biases
  bool scale_scores = true;      ///< by 1 / sqrt(C)
  bool cross_attention = false;  ///< blocks read another stack
  bool final_dropout = false;    ///< behind the norm of the last pre-norm block

  /// Distances have vectors that are multiplied with queries, or with keys too, and places have none.
  bool scores_distances() const { return position_embeddings.starts_with("relative_key"); }
  int64_t head_width() const { return d_kv > 0 ? d_kv : hidden_size / num_attention_heads; }
  /// Of all heads side by side.
  int64_t heads_width() const { return head_width() * num_attention_heads; }
};

/// What BERT and its descendants have in common. The members below the line are facts of a family, not options.
struct EncoderConfig : StackConfig {
  std::string like;
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  std::string initializer = "truncated_normal";
  int64_t pad_token_id = 0;
  bool freeze_pad_embedding = false;
  bool tie_word_embeddings = true;
  bool pooler = false;
  // ----
  bool bare_pooler = true;  ///< an encoder without objectives keeps its pooler, as Hugging Face's class does
  bool positions_after_padding =
      false;  ///< places count real tokens from pad_token_id + 1 on; padding has place pad_token_id
  bool token_types = true;
  bool always_projects = false;  ///< a projection from embedding to hidden width even where they are equal
  bool glorot_projection =
      false;                   ///< that projection starts as Glorot says where the other weights are truncated_normal
  bool gelu_head = false;      ///< the prediction head uses exact GELU, whatever hidden_act is
  bool embedding_norm = true;  ///< a norm behind the sum of embeddings
  bool scale_embedding = false;
  int64_t position_offset = 0;  ///< rows of the position table before that of the first place
  // ---- of an encoder with a decoder
  bool is_encoder_decoder = false;
  bool shared_embeddings = true;
  int64_t num_decoder_layers = 0;
  int64_t decoder_attention_heads = 0;
  int64_t decoder_ffn_dim = 0;
  int64_t decoder_start_token_id = 0;
  int64_t bos_token_id = -1;
  int64_t eos_token_id = 1;
  int64_t forced_bos_token_id = -1;
  int64_t forced_eos_token_id = -1;
  bool decoder_starts_with_last =
      false;  ///< the decoder reads the last target first, in the place of decoder_start_token_id
  bool scale_decoder_outputs = false;  ///< hidden states are divided by sqrt(hidden_size) before the token table
  bool logits_bias = false;            ///< a bias of the tokens that is not trained
  bool trained_logits_bias = false;    ///< one that is
  bool texts_begin = false;            ///< texts begin with [CLS] (<s>), those that are read and those that are written
  // ---- of XLNet
  bool two_streams = false;  ///< a content and a query stream over relative places
  std::string attn_type = "bi";
  int64_t clamp_len = -1;
  int64_t mem_len = 0;
  int64_t reuse_len = 0;
  bool bi_data = false;
  bool same_length = false;

  /// Training carries what layers read from segment to segment.
  bool carries_memory() const { return two_streams && mem_len > 0 && reuse_len > 0; }
  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  /// Tokens of the longest input.
  static constexpr int64_t any_length = int64_t{1} << 40;  ///< more than any text has
  int64_t longest_input() const {
    const bool sized = position_embeddings != "none" || std::holds_alternative<LinformerAttention>(attention) ||
                       std::holds_alternative<BigBirdAttention>(attention);
    return sized ? max_position_embeddings - (positions_after_padding ? pad_token_id + 1 : 0) : any_length;
  }
};

/// A model that writes text from left to right.
inline bool is_generative(const EncoderConfig& model) { return model.is_decoder || model.is_encoder_decoder; }

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

inline void starts(EncoderConfig& c, const char* initializer, bool freeze_pad_embedding) {
  c.initializer = initializer;
  c.freeze_pad_embedding = freeze_pad_embedding;
}

/// The lines of every encoder.
template <class V, class Config>
void describe_encoder(V& v, Config& c) {
  v.like(c, "initialisation as in that code",
         {{"google-bert", [](Config& m) { starts(m, "truncated_normal", false); }},
          {"albert", [](Config& m) { starts(m, "truncated_normal", false); }},
          {"electra", [](Config& m) { starts(m, "truncated_normal", false); }},
          {"huggingface", [](Config& m) { starts(m, "normal", true); }},
          {"fairseq-roberta", [](Config& m) { starts(m, "normal", true); }},
          {"bart", [](Config& m) { starts(m, "normal", true); }},
          {"spanbert", [](Config& m) { starts(m, "normal", false); }},
          {"xlnet", [](Config& m) { starts(m, "normal", false); }},
          {"megatron", [](Config& m) { starts(m, "normal_scaled", false); }},
          {"t5", [](Config& m) { starts(m, "fan_in", false); }}});
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = as many as the tokenizer has",
    in_range(0, most::tokens));
  v("hidden_size", c.hidden_size, "width of the residual stream", in_range(1, most::width));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", in_range(0, most::layers));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size", in_range(1, most::heads));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", in_range(1, most::inner_width));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head",
    one_of(activation_names));
  v("feed_forward", c.feed_forward,
    "plain = activation(x W1) W2; gated = (activation(x W1) * x W3) W2, GEGLU and its kin", one_of({"plain", "gated"}));
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward",
    in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities",
    in_range(0, 1, open_end));
  v("max_position_embeddings", c.max_position_embeddings,
    "rows of the position table: the longest sequence [tokens], for roberta and longformer with pad_token_id + 1 rows "
    "on top",
    in_range(1, most::tokens));
  v("position_embeddings", c.position_embeddings,
    "the position table: learned; sinusoidal = sines and cosines that are not trained; sinusoidal_halves = all sines "
    "before all cosines; sinusoidal_start = they are trained on; none = places come from attention alone; relative_key "
    "= no table, but in every layer a vector for each distance, which is multiplied with queries and added to scores "
    "(Shaw et al. 2018, equation 5); relative_key_query = with keys too (Huang et al. 2020, method 4)",
    one_of({"learned", "sinusoidal", "sinusoidal_halves", "sinusoidal_start", "none", "relative_key",
            "relative_key_query"}));
  v("relative_positions", c.relative_positions,
    "distances up to this one have vectors that are added to keys and values in every layer (Shaw et al. 2018); 0 = "
    "none",
    in_range(0, 1 << 14));
  v("type_vocab_size", c.type_vocab_size, "segment types", in_range(1, 1 << 20));
  v("initializer_range", c.initializer_range, "standard deviation of the initial weights", in_range(0, 10));
  v("initializer", c.initializer,
    "the initial distribution: normal; truncated_normal = cut at two standard deviations; normal_scaled = products "
    "into the residual stream divided by sqrt(2 layers), as in GPT-2; fan_in = T5's deviations, 1 / sqrt(inputs), that "
    "of queries also divided by sqrt(d_kv); xavier = uniform, 1 / sqrt of the mean of inputs and outputs of each "
    "matrix",
    one_of({"truncated_normal", "normal", "normal_scaled", "fan_in", "xavier"}));
  v("norm_place", c.norm_place,
    "post = behind each sum with the residual, as in BERT; pre = before each half of a block and behind the last",
    one_of({"post", "pre"}));
  v("norm_kind", c.norm_kind, "layer, or rms = without mean and bias", one_of({"layer", "rms"}));
  v("layer_norm_eps", c.layer_norm_eps, "added to the variance in every norm", in_range(0, 1));
  v("pad_token_id", c.pad_token_id, "id of the padding token; set from the tokenizer when training",
    in_range(0, most::tokens));
  v("freeze_pad_embedding", c.freeze_pad_embedding,
    "padding row starts at zero and gets no gradient from the lookup, as torch's padding_idx does");
  v("tie_word_embeddings", c.tie_word_embeddings, "prediction head shares the token embedding");
  v("is_decoder", c.is_decoder, "each token sees only itself and what came before");
  v("bos_token_id", c.bos_token_id,
    "id that begins a text, of a model that was imported without a tokenizer and is exported again; -1 = not known",
    in_range(-1, most::tokens));
  v("eos_token_id", c.eos_token_id,
    "of a model that writes: id that ends a text; -1 = none; set from the tokenizer when training",
    in_range(-1, most::tokens));
  v("attention", c.attention, "which keys a query scores");
}
/// What encoder-decoders have beside the lines of an encoder.
template <class V, class Config>
void describe_decoder(V& v, Config& c) {
  describe_encoder(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("is_encoder_decoder", c.is_encoder_decoder,
    "false = one stack alone: with is_decoder the decoder, which reads no encoder, else the encoder");
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
/// Of a kind without options of its own.
template <class V, std::derived_from<EncoderConfig> Config>
void describe(V& v, Config& c) {
  if (!Config().is_encoder_decoder) return describe_encoder(v, c);
  describe_decoder(v, c);
  v("scale_embedding", c.scale_embedding, "token embeddings are multiplied by sqrt(hidden_size)");
}

/// BERT: embeddings, a stack of post-norm blocks, and a pooler where an objective reads one.
/// Source: Devlin et al. 2019, section 3 (arXiv 1810.04805); option names of transformers' BertConfig.
struct BertConfig : EncoderConfig {
  static constexpr const char* kind = "bert";
};

/// RoBERTa: BERT without segments, with places that count from behind the padding id.
/// Source: Liu et al. 2019 (arXiv 1907.11692); fairseq's models/roberta.
struct RobertaConfig : EncoderConfig {
  static constexpr const char* kind = "roberta";
  RobertaConfig() {
    max_position_embeddings = 514, type_vocab_size = 1, layer_norm_eps = 1e-5, pad_token_id = 1, initializer = "normal",
    freeze_pad_embedding = true;
    positions_after_padding = true, gelu_head = true;
  }
};

/// ALBERT: a narrow embedding that is projected to the width, and layers that share their weights.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); option names of transformers' AlbertConfig.
struct AlbertConfig : EncoderConfig {
  static constexpr const char* kind = "albert";
  AlbertConfig() {
    embedding_size = 128, num_hidden_groups = 1, hidden_act = "gelu_new",
    hidden_dropout_prob = attention_probs_dropout_prob = 0, always_projects = true;
  }
};
template <class V>
void describe(V& v, AlbertConfig& c) {
  describe_encoder(v, c);
  v("embedding_size", c.embedding_size, "width of the embeddings, projected to hidden_size; 0 = hidden_size",
    in_range(0, most::width));
  v("num_hidden_groups", c.num_hidden_groups, "groups of layers; the layers of a group share their weights",
    in_range(1, most::layers));
  v("inner_group_num", c.inner_group_num, "blocks that a layer runs one after the other", in_range(1, 64));
  v("share", c.share, "what layers of a group share (the paper's table 4): all, only attention, only ffn, or none",
    one_of({"all", "attention", "ffn", "none"}));
}

/// ELECTRA: BERT with an embedding width of its own; the discriminator of `rtd`, or the generator of `mlm`.
/// Source: Clark et al. 2020, section 2 (arXiv 2003.10555); option names of transformers' ElectraConfig. In
/// google-research/electra, to which initializer: truncated_normal belongs, the projection of embeddings and the
/// discriminator's output are Glorot uniform.
struct ElectraConfig : EncoderConfig {
  static constexpr const char* kind = "electra";
  ElectraConfig() {
    embedding_size = 128, hidden_size = 256, num_attention_heads = 4, intermediate_size = 1024, gelu_head = true,
    bare_pooler = false;
    glorot_projection = true;
  }
};
template <class V>
void describe(V& v, ElectraConfig& c) {
  describe_encoder(v, c);
  v("embedding_size", c.embedding_size,
    "width of the embeddings, projected to hidden_size where that differs; 0 = hidden_size", in_range(0, most::width));
}

/// DistilBERT: BERT without segments and pooler.
/// Source: Sanh et al. 2019, section 3 (arXiv 1910.01108). Differs: dropout after the attention projection too, as in
/// BERT.
struct DistilBertConfig : EncoderConfig {
  static constexpr const char* kind = "distilbert";
  DistilBertConfig() {
    num_hidden_layers = 6, type_vocab_size = 1, token_types = bare_pooler = false, initializer = "normal";
  }
};

/// Longformer: RoBERTa with attention in a window and more positions; time and memory are linear in the length.
/// Source: Beltagy et al. 2020 (arXiv 2004.05150); option names of transformers' LongformerConfig.
struct LongformerConfig : EncoderConfig {
  static constexpr const char* kind = "longformer";
  LongformerConfig() {
    max_position_embeddings = 4098, type_vocab_size = 1, layer_norm_eps = 1e-5, pad_token_id = 1,
    initializer = "normal", freeze_pad_embedding = true;
    positions_after_padding = true, gelu_head = true, attention = WindowAttention{};
  }
};

/// BigBird: BERT with attention in blocks and more positions.
/// Source: Zaheer et al. 2020 (arXiv 2007.14062); option names of transformers' BigBirdConfig.
/// Differs: dropout behind the embedding's norm, as in BERT.
struct BigBirdConfig : EncoderConfig {
  static constexpr const char* kind = "bigbird";
  BigBirdConfig() { max_position_embeddings = 4096, hidden_act = "gelu_new", attention = BigBirdAttention{}; }
};
template <class V>
void describe(V& v, BigBirdConfig& c) {
  describe_encoder(v, c);
  v("pooler", c.pooler,
    "a pooler is carried along where no objective reads one, as Hugging Face's classes have it; it is not trained");
}

/// Performer: BERT with attention by random features; time and memory are linear in the length.
/// Source: Choromanski et al. 2021 (arXiv 2009.14794).
struct PerformerConfig : EncoderConfig {
  static constexpr const char* kind = "performer";
  PerformerConfig() { attention = PerformerAttention{}; }
};

/// GPT-2: a pre-norm stack that sees the past alone.
/// Source: Radford et al. 2019, section 2.3; openai/gpt-2, src/model.py; option names shared with the encoders (n_embd
/// = hidden_size).
struct Gpt2Config : EncoderConfig {
  static constexpr const char* kind = "gpt2";
  Gpt2Config() {
    hidden_act = "gelu_new", norm_place = "pre", layer_norm_eps = 1e-5, max_position_embeddings = 1024,
    type_vocab_size = 1, initializer = "normal_scaled";
    is_decoder = true, token_types = bare_pooler = embedding_norm = false;
  }
};

template <class V>
void describe(V& v, Gpt2Config& c) {
  describe_encoder(v, c);
  v("prefix_lm", c.prefix_lm,
    "a decoder alone sees what it read, but for its last token, from both sides, and what it writes from before "
    "(prefix LM, Raffel et al. 2020, section 3.2.1)");
}

/// T5: pre-norm stacks without biases, places as a bias of scores, one for each bucket of distances. Version 1.0 as it
/// stands; 1.1 has feed_forward: gated, hidden_act: gelu_new, tie_word_embeddings: false, scale_decoder_outputs: false.
/// Source: Raffel et al. 2020, section 2.1 (arXiv 1910.10683); option names shared with the encoders (d_model =
/// hidden_size, d_ff = intermediate_size).
struct T5Config : EncoderConfig {
  static constexpr const char* kind = "t5";
  T5Config() {
    hidden_size = 512, num_hidden_layers = 6, num_attention_heads = 8, intermediate_size = 2048, hidden_act = "relu",
    norm_place = "pre", norm_kind = "rms", layer_norm_eps = 1e-6;
    relative_attention_num_buckets = 32, d_kv = 64, position_embeddings = "none", type_vocab_size = 1,
    initializer = "fan_in", activation_dropout = 0.1, max_position_embeddings = 512;
    is_encoder_decoder = scale_decoder_outputs = final_dropout = true,
    token_types = bare_pooler = embedding_norm = linear_bias = scale_scores = false;
  }
};
template <class V>
void describe(V& v, T5Config& c) {
  describe_decoder(v, c);
  v("d_kv", c.d_kv, "width of a head; 0 = hidden_size / num_attention_heads", in_range(0, most::head_width));
  v("relative_attention_num_buckets", c.relative_attention_num_buckets,
    "buckets of distances, each with a bias for every head", in_range(2, 1 << 20));
  v("relative_attention_max_distance", c.relative_attention_max_distance,
    "distance from which on all fall into the last bucket", in_range(2, most::tokens));
  v("scale_decoder_outputs", c.scale_decoder_outputs,
    "hidden states are divided by sqrt(hidden_size) before the token table, as version 1.0 does");
}

/// BART: post-norm stacks with a norm behind the embeddings, places from row 2 on.
/// Source: Lewis et al. 2020, section 2.1 (arXiv 1910.13461); fairseq, models/bart; option names shared with the
/// encoders.
struct BartConfig : EncoderConfig {
  static constexpr const char* kind = "bart";
  BartConfig() {
    num_hidden_layers = 6, layer_norm_eps = 1e-5, max_position_embeddings = 1024, type_vocab_size = 1, pad_token_id = 1,
    initializer = "normal", freeze_pad_embedding = true, attention_probs_dropout_prob = 0;
    is_encoder_decoder = logits_bias = texts_begin = true, token_types = bare_pooler = false, position_offset = 2,
    decoder_start_token_id = eos_token_id = 2;
  }
};
/// mBART: BART with norms before each half of a block and scaled embeddings; the decoder starts with the last token of
/// its target. Source: Liu et al. 2020, section 2.2 (arXiv 2001.08210).
struct MBartConfig : BartConfig {
  static constexpr const char* kind = "mbart";
  MBartConfig() { norm_place = "pre", scale_embedding = decoder_starts_with_last = true, texts_begin = false; }
};
/// PEGASUS: mBART without a norm behind the embeddings, with places that are not trained.
/// Source: Zhang et al. 2020, section 5 (arXiv 1912.08777); transformers, models/pegasus.
struct PegasusConfig : BartConfig {
  static constexpr const char* kind = "pegasus";
  PegasusConfig() {
    norm_place = "pre", hidden_act = "relu", position_embeddings = "sinusoidal_halves", pad_token_id = 0,
    max_position_embeddings = 512;
    scale_embedding = true, embedding_norm = texts_begin = false, position_offset = 0, decoder_start_token_id = 0,
    eos_token_id = 1;
  }
};
/// The original Transformer: post-norm stacks, places that are not trained, one token table for everything.
/// Source: Vaswani et al. 2017, section 3 (arXiv 1706.03762).
struct TransformerConfig : EncoderConfig {
  static constexpr const char* kind = "transformer";
  TransformerConfig() {
    hidden_size = 512, num_hidden_layers = 6, num_attention_heads = 8, intermediate_size = 2048, hidden_act = "relu",
    layer_norm_eps = 1e-6, position_embeddings = "sinusoidal", type_vocab_size = 1;
    attention_probs_dropout_prob = 0, initializer = "xavier";
    is_encoder_decoder = scale_embedding = true, token_types = bare_pooler = embedding_norm = false;
  }
};

/// XLNet: a content stream that reads tokens and a query stream that predicts them, over relative places, relative
/// segments and a memory. Source: Yang et al. 2019, section 2 (arXiv 1906.08237); zihangdai/xlnet, modeling.py; option
/// names shared with the encoders (d_model = hidden_size) and of transformers' XLNetConfig. Differs: the biases of
/// scores belong to each layer (untie_r), as in the pretraining.
struct XlnetConfig : EncoderConfig {
  static constexpr const char* kind = "xlnet";
  XlnetConfig() {
    type_vocab_size = 3, pad_token_id = 5, position_embeddings = "none", initializer = "normal",
    activation_dropout = 0.1;
    two_streams = trained_logits_bias = true, bare_pooler = embedding_norm = false;
  }
};
template <class V>
void describe(V& v, XlnetConfig& c) {
  describe_encoder(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("attn_type", c.attn_type, "bi = a token sees both sides, uni = only itself and what came before",
    one_of({"bi", "uni"}));
  v("clamp_len", c.clamp_len, "distances beyond this one count as this one [tokens]; -1 = none do",
    in_range(-1, most::tokens));
  v("mem_len", c.mem_len,
    "states of earlier segments that each layer keeps for the next one [tokens]; 0 = training carries no memory, and "
    "other uses keep all of them",
    in_range(0, most::tokens));
  v("reuse_len", c.reuse_len,
    "of a segment, only so many first states go into the memory, and in training the next one begins behind them "
    "[tokens]; 0 = all of them",
    in_range(0, most::tokens));
  v("bi_data", c.bi_data,
    "in training half of the rows read their texts from right to left: their distances change sign");
  v("same_length", c.same_length, "attn_type uni: every token sees as many as the memory is long, and itself");
}

using ModelConfig = std::variant<BertConfig, RobertaConfig, AlbertConfig, ElectraConfig, DistilBertConfig,
                                 LongformerConfig, BigBirdConfig, PerformerConfig, Gpt2Config, T5Config, BartConfig,
                                 MBartConfig, PegasusConfig, TransformerConfig, XlnetConfig>;

/// What every kind has.
inline EncoderConfig& encoder_of(ModelConfig& model) {
  return std::visit([](auto& m) -> EncoderConfig& { return m; }, model);
}
inline const EncoderConfig& encoder_of(const ModelConfig& model) {
  return std::visit([](const auto& m) -> const EncoderConfig& { return m; }, model);
}
/// `bert`, `roberta`, ...
inline std::string kind_of(const ModelConfig& model) {
  return std::visit([](const auto& m) { return std::string(m.kind); }, model);
}

}  // namespace cloze
