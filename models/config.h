#pragma once
// What a network is made of, as it stands in YAML. Field names are those of Hugging Face's config.json.
#include <cstdint>
#include <string>
#include <variant>

#include "core/config.h"

namespace cloze {

/// Scaled dot-product attention in which every query scores every key.
/// Source: Vaswani et al. 2017, equation 1 (arXiv 1706.03762).
struct FullAttention {
  static constexpr const char* kind = "full";
};
template <class V>
void describe(V&, FullAttention&) {}

using AttentionConfig = std::variant<FullAttention>;

/// BERT: embeddings, a stack of post-norm blocks, and a pooler where an objective reads one.
/// Source: Devlin et al. 2019, section 3 (arXiv 1810.04805); option names of transformers' BertConfig.
struct BertConfig {
  static constexpr const char* kind = "bert";
  std::string like;
  int64_t vocab_size = 0;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  std::string initializer = "truncated_normal";
  double layer_norm_eps = 1e-12;
  int64_t pad_token_id = 0;
  bool freeze_pad_embedding = false;
  bool tie_word_embeddings = true;
  bool is_decoder = false;
  AttentionConfig attention{};
};

/// The values of `hidden_act`, by the names of transformers' ACT2FN.
inline const std::vector<std::string> activation_names = {
    "gelu", "gelu_python", "gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate", "gelu_fast",
    "quick_gelu", "gelu_10", "relu", "relu2", "relu6", "leaky_relu", "silu", "swish", "mish", "tanh", "sigmoid",
    "laplace", "linear"};

template <class V>
void describe(V& v, BertConfig& c) {
  v.like(c, "initialisation as in that code",
         {{"google-bert", [](BertConfig& m) { m.initializer = "truncated_normal", m.freeze_pad_embedding = false; }},
          {"huggingface", [](BertConfig& m) { m.initializer = "normal", m.freeze_pad_embedding = true; }}});
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = as many as the tokenizer has", at_least(0));
  v("hidden_size", c.hidden_size, "width of the residual stream", at_least(1));
  v("num_hidden_layers", c.num_hidden_layers, "blocks in the stack", at_least(0));
  v("num_attention_heads", c.num_attention_heads, "attention heads; must divide hidden_size", at_least(1));
  v("intermediate_size", c.intermediate_size, "width inside the feed-forward layer", at_least(1));
  v("hidden_act", c.hidden_act, "activation of the feed-forward layer and the prediction head", one_of(activation_names));
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout after embeddings, attention and feed-forward", in_range(0, 1, open_end));
  v("attention_probs_dropout_prob", c.attention_probs_dropout_prob, "dropout on attention probabilities", in_range(0, 1, open_end));
  v("max_position_embeddings", c.max_position_embeddings, "longest sequence [tokens]", at_least(1));
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

using ModelConfig = std::variant<BertConfig>;

}  // namespace cloze
