#pragma once
// What a network is made of, as it stands in YAML. Field names are those of Hugging Face's config.json.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace cloze {

/// Scaled dot-product attention in which every query scores every key.
/// Source: Vaswani et al. 2017, equation 1 (arXiv 1706.03762).
struct FullAttention {
  static constexpr const char* kind = "full";
};
template <class V>
void describe(V&, FullAttention&) {}

/// A sliding window, with a few tokens that see and are seen by everything.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150).
struct WindowAttention {
  static constexpr const char* kind = "window";
  std::string attention_window = "512";
  std::string global_tokens = "first";
};
template <class V>
void describe(V& v, WindowAttention& c) {
  v("attention_window", c.attention_window, "keys that a query sees, half of them on either side [tokens], even; one number for all layers, or one for each, separated by commas");
  v("global_tokens", c.global_tokens, "tokens that see and are seen by everything: first = the [CLS] of each sequence, or none", one_of({"first", "none"}));
}
/// The windows of a config, one or as many as layers. Throws ConfigError.
inline std::vector<int64_t> windows_of(const WindowAttention& config) {
  std::vector<int64_t> found;
  const std::string& text = config.attention_window;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    require<ConfigError>(error == std::errc() && stop == word.data() + word.size() && value >= 2 && value % 2 == 0 && value <= 1 << 24, "attention_window '", text, "' must be even numbers of at least 2, one for all layers or one for each: 512, or 32,64,128");
    found.push_back(value);
    begin = end + 1;
  }
  return found;
}

using AttentionConfig = std::variant<FullAttention, WindowAttention>;

/// What BERT and its descendants have in common. The members below the line are facts of a family, not options.
struct EncoderConfig {
  std::string like;
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  int64_t max_position_embeddings = 512;
  std::string position_embeddings = "learned";
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  std::string initializer = "truncated_normal";
  double layer_norm_eps = 1e-12;
  int64_t pad_token_id = 0;
  bool freeze_pad_embedding = false;
  bool tie_word_embeddings = true;
  bool is_decoder = false;
  AttentionConfig attention{};
  int64_t num_hidden_groups = 0;   // 0: every layer has weights of its own
  int64_t inner_group_num = 1;
  std::string share = "all";
  // ----
  bool positions_after_padding = false;   ///< places count real tokens from pad_token_id + 1 on; padding has place pad_token_id
  bool token_types = true;
  bool always_projects = false;           ///< a projection from embedding to hidden width even where they are equal
  bool gelu_head = false;                 ///< the prediction head uses exact GELU, whatever hidden_act is

  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  /// Tokens of the longest input.
  int64_t longest_input() const { return max_position_embeddings - (positions_after_padding ? pad_token_id + 1 : 0); }
};

/// The values of `hidden_act`, by the names of transformers' ACT2FN.
inline const std::vector<std::string> activation_names = {
    "gelu", "gelu_python", "gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate", "gelu_fast",
    "quick_gelu", "gelu_10", "relu", "relu2", "relu6", "leaky_relu", "silu", "swish", "mish", "tanh", "sigmoid",
    "laplace", "linear"};

/// The lines of every encoder.
template <class V, class Config>
void describe_encoder(V& v, Config& c) {
  v.like(c, "initialisation as in that code",
         {{"google-bert", [](Config& m) { m.initializer = "truncated_normal", m.freeze_pad_embedding = false; }},
          {"huggingface", [](Config& m) { m.initializer = "normal", m.freeze_pad_embedding = true; }}});
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = as many as the tokenizer has", at_least(0));
  v("hidden_size", c.hidden_size, "width of the residual stream", at_least(1));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", at_least(0));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size", at_least(1));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", at_least(1));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head", one_of(activation_names));
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward", in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities", in_range(0, 1, open_end));
  v("max_position_embeddings", c.max_position_embeddings, "rows of the position table: the longest sequence [tokens], for roberta and longformer with pad_token_id + 1 rows on top", at_least(1));
  v("position_embeddings", c.position_embeddings, "the position table: learned; sinusoidal = sines and cosines that are not trained; sinusoidal_start = they are trained on",
    one_of({"learned", "sinusoidal", "sinusoidal_start"}));
  v("type_vocab_size", c.type_vocab_size, "segment types", at_least(1));
  v("initializer_range", c.initializer_range, "standard deviation of the initial weights", in_range(0, 10));
  v("initializer", c.initializer, "shape of the initial distribution; truncated_normal cuts at two standard deviations",
    one_of({"truncated_normal", "normal"}));
  v("layer_norm_eps", c.layer_norm_eps, "added to the variance in every layer norm", in_range(0, 1));
  v("pad_token_id", c.pad_token_id, "id of the padding token; set from the tokenizer when training", at_least(0));
  v("freeze_pad_embedding", c.freeze_pad_embedding,
    "padding row starts at zero and gets no gradient from the lookup, as torch's padding_idx does");
  v("tie_word_embeddings", c.tie_word_embeddings, "prediction head shares the token embedding");
  v("is_decoder", c.is_decoder, "each token sees only itself and what came before");
  v("attention", c.attention, "which keys a query scores");
}

/// BERT: embeddings, a stack of post-norm blocks, and a pooler where an objective reads one.
/// Source: Devlin et al. 2019, section 3 (arXiv 1810.04805); option names of transformers' BertConfig.
struct BertConfig : EncoderConfig {
  static constexpr const char* kind = "bert";
};
template <class V>
void describe(V& v, BertConfig& c) {
  describe_encoder(v, c);
}

/// RoBERTa: BERT without segments, with places that count from behind the padding id.
/// Source: Liu et al. 2019 (arXiv 1907.11692); fairseq's models/roberta.
struct RobertaConfig : EncoderConfig {
  static constexpr const char* kind = "roberta";
  RobertaConfig() {
    max_position_embeddings = 514, type_vocab_size = 1, layer_norm_eps = 1e-5, pad_token_id = 1, initializer = "normal", freeze_pad_embedding = true;
    positions_after_padding = true, gelu_head = true;
  }
};
template <class V>
void describe(V& v, RobertaConfig& c) {
  describe_encoder(v, c);
}

/// ALBERT: a narrow embedding that is projected to the width, and layers that share their weights.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); option names of transformers' AlbertConfig.
struct AlbertConfig : EncoderConfig {
  static constexpr const char* kind = "albert";
  AlbertConfig() {
    embedding_size = 128, num_hidden_groups = 1, hidden_act = "gelu_new", hidden_dropout_prob = attention_probs_dropout_prob = 0, always_projects = true;
  }
};
template <class V>
void describe(V& v, AlbertConfig& c) {
  describe_encoder(v, c);
  v("embedding_size", c.embedding_size, "width of the embeddings, projected to hidden_size; 0 = hidden_size", at_least(0));
  v("num_hidden_groups", c.num_hidden_groups, "groups of layers; the layers of a group share their weights", at_least(1));
  v("inner_group_num", c.inner_group_num, "blocks that a layer runs one after the other", at_least(1));
  v("share", c.share, "what layers of a group share (the paper's table 4): all, only attention, only ffn, or none",
    one_of({"all", "attention", "ffn", "none"}));
}

/// ELECTRA: BERT with an embedding width of its own; the discriminator of `rtd`, or the generator of `mlm`.
/// Source: Clark et al. 2020, section 2 (arXiv 2003.10555); option names of transformers' ElectraConfig.
struct ElectraConfig : EncoderConfig {
  static constexpr const char* kind = "electra";
  ElectraConfig() {
    embedding_size = 128, hidden_size = 256, num_attention_heads = 4, intermediate_size = 1024, gelu_head = true;
  }
};
template <class V>
void describe(V& v, ElectraConfig& c) {
  describe_encoder(v, c);
  v("embedding_size", c.embedding_size, "width of the embeddings, projected to hidden_size where that differs; 0 = hidden_size", at_least(0));
}

/// DistilBERT: BERT without segments and pooler.
/// Source: Sanh et al. 2019, section 3 (arXiv 1910.01108). Differs: dropout after the attention projection too, as in BERT.
struct DistilBertConfig : EncoderConfig {
  static constexpr const char* kind = "distilbert";
  DistilBertConfig() { num_hidden_layers = 6, type_vocab_size = 1, token_types = false, initializer = "normal"; }
};
template <class V>
void describe(V& v, DistilBertConfig& c) {
  describe_encoder(v, c);
}

/// Longformer: RoBERTa with attention in a window and more positions; time and memory are linear in the length.
/// Source: Beltagy et al. 2020 (arXiv 2004.05150); option names of transformers' LongformerConfig.
struct LongformerConfig : EncoderConfig {
  static constexpr const char* kind = "longformer";
  LongformerConfig() {
    max_position_embeddings = 4098, type_vocab_size = 1, layer_norm_eps = 1e-5, pad_token_id = 1, initializer = "normal", freeze_pad_embedding = true;
    positions_after_padding = true, gelu_head = true, attention = WindowAttention{};
  }
};
template <class V>
void describe(V& v, LongformerConfig& c) {
  describe_encoder(v, c);
}

using ModelConfig = std::variant<BertConfig, RobertaConfig, AlbertConfig, ElectraConfig, DistilBertConfig, LongformerConfig>;

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
