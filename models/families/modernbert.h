#pragma once
#include "models/attention/kinds.h"
#include "models/transformer_config.h"

namespace cloze {

/// ModernBERT (Warner et al. 2024, arXiv 2412.13663, section 2.1): a pre-norm encoder without biases and segments, with
/// rotary positions, gated feed-forward layers with GELU (GeGLU), a norm after the embeddings, and none before the
/// first attention. Every third layer has full attention, the others a sliding window of 128 tokens, so that a text of
/// 8,192 costs little more than its length. Composed of: models/single_stack.cpp; models/attention/full.cpp. Trained
/// with: mlm.
/// Hugging Face: interchange/huggingface/modernbert.cpp. Option names of transformers' ModernBertConfig
/// (hidden_activation = hidden_act, norm_eps = layer_norm_eps, mlp_dropout = activation_dropout).
/// Shapes: configs/modernbert, of ModernBERT and of Ettin (Weller et al. 2025, arXiv 2507.11412).
/// Parameters: modernbert/base 149,655,232; modernbert/ettin-17m 16,913,600.
/// Differs: embedding_dropout (hidden_dropout_prob) is of the outputs of attention and feed-forward layers too.
struct ModernBertConfig : TransformerConfig {
  static constexpr const char* kind = "modernbert";
  ModernBertConfig() {
    num_hidden_layers = 22;
    intermediate_size = 1152;
    max_position_embeddings = 8192;
    type_vocab_size = 1;
    hidden_dropout_prob = attention_probs_dropout_prob = 0;
    feed_forward = FeedForward::gated;
    norm_place = NormPlacement::pre;
    layer_norm_eps = 1e-5;
    positions = Rotary{};
    attention = AlternatingAttention{};
    initializer = Initializer::truncated_normal_scaled;
    freeze_pad_embedding = true;
    token_types = first_attention_norm = false;
    attention_bias = mlp_bias = norm_bias = classifier_bias = false;
    gelu_head = true;
  }
};
template <class V>
void describe(V& v, ModernBertConfig& c) {
  describe_transformer(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("attention_bias", c.attention_bias, "biases of the projections of attention");
  v("mlp_bias", c.mlp_bias, "biases of the feed-forward layers");
  v("norm_bias", c.norm_bias, "biases of the norms");
  v("classifier_bias", c.classifier_bias, "bias of the prediction head's dense layer");
  v("decoder_bias", c.decoder_bias, "bias of the logits");
}

}  // namespace cloze
