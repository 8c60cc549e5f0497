#pragma once
#include "models/attention/kinds.h"
#include "models/families/roberta.h"

namespace cloze {

/// Longformer (Beltagy et al. 2020, arXiv 2004.05150): RoBERTa with sliding-window attention and a few global tokens,
/// which attend to all others and are attended to by all. Time and memory grow linearly with the length.
/// Composed of: models/single_stack.cpp; models/attention/window.cpp. Trained with: mlm.
/// Hugging Face: interchange/huggingface/longformer.cpp. Option names of transformers' LongformerConfig.
/// Shapes: configs/longformer. Parameters: longformer/base-4096 148,711,257.
struct LongformerConfig : RobertaConfig {
  static constexpr const char* kind = "longformer";
  LongformerConfig() {
    max_position_embeddings = 4098;
    attention = WindowAttention{};
  }
};

}  // namespace cloze
