#pragma once
#include "models/config.h"

namespace cloze {

/// Longformer (Beltagy et al. 2020, arXiv 2004.05150): RoBERTa with sliding-window attention and a few global tokens,
/// which attend to all others and are attended to by all. Time and memory grow linearly with the length.
/// Composed of: models/single_stack.cpp; models/attention/window.cpp. Trained with: mlm.
/// Shapes: configs/longformer. Option names of transformers' LongformerConfig.
struct LongformerConfig : BackboneConfig {
  static constexpr const char* kind = "longformer";
  LongformerConfig() {
    max_position_embeddings = 4098;
    type_vocab_size = 1;
    layer_norm_eps = 1e-5;
    pad_token_id = 1;
    initializer = Initializer::normal;
    freeze_pad_embedding = true;
    positions_after_padding = true;
    gelu_head = true;
    attention = WindowAttention{};
  }
};

}  // namespace cloze
