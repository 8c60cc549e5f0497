#pragma once
// The layer options of the YAML config, one struct for each part that reads them.
#include <cstdint>

#include "core/config/config_rule.h"
#include "core/tensor/activation.h"

namespace cloze {

enum class NormKind { layer, rms };
constexpr auto choices(NormKind) {
  return std::array{Choice{NormKind::layer, "layer", "layer norm"},
                    Choice{NormKind::rms, "rms", "RMS norm, without mean and bias"}};
}

/// The norms of a network.
struct NormConfig {
  NormKind norm_kind = NormKind::layer;
  double layer_norm_eps = 1e-12;
  bool norm_bias = true;  ///< of layer norms; RMS norms have none
};

enum class FeedForward { plain, gated };
constexpr auto choices(FeedForward) {
  return std::array{Choice{FeedForward::plain, "plain", "activation(x W1) W2"},
                    Choice{FeedForward::gated, "gated", "(activation(x W1) * x W3) W2, as GEGLU and SwiGLU"}};
}

/// What the layers of a network have in common, whatever they compute.
struct LayerSizes : NormConfig {
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  Activation hidden_act = Activation::gelu;  ///< of feed-forward layers, and of the prediction head
  double hidden_dropout_prob = 0.1;
};

/// The feed-forward layers of a stack.
struct FeedForwardConfig {
  int64_t intermediate_size = 3072;
  FeedForward feed_forward = FeedForward::plain;
  double activation_dropout = 0;
  bool mlp_bias = true;
};

/// The embedding tables and their sum, the input of a stack.
struct EmbeddingConfig {
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;  ///< 0: the width of the stack
  int64_t type_vocab_size = 2;
  int64_t pad_token_id = 0;
  bool freeze_pad_embedding = false;
  bool scale_embedding = false;
  bool token_types = true;               ///< there is a table of segment types
  bool embedding_norm = true;            ///< a norm after the sum of the embeddings
  bool positions_after_padding = false;  ///< position ids count real tokens from pad_token_id + 1 on; padding has
                                         ///< position id pad_token_id (fairseq)
  int64_t position_offset = 0;           ///< row of the position table that position 0 uses
};

/// The MLM head.
struct TokenHeadConfig {
  bool classifier_bias = true;  ///< of its dense layer
  bool decoder_bias = true;     ///< of the logits
  bool gelu_head = false;       ///< exact GELU, whatever hidden_act is
};

/// The bias of the output logits.
enum class LogitsBias { none, fixed, trained };

/// The LM head.
struct NextTokenHeadConfig {
  LogitsBias logits_bias = LogitsBias::none;
  bool scale_decoder_outputs = false;  ///< hidden states are divided by sqrt(hidden_size) before the head
};

}  // namespace cloze
