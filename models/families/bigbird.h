#pragma once
#include "models/attention/kinds.h"
#include "models/families/bert.h"

namespace cloze {

/// BigBird (Zaheer et al. 2020, arXiv 2007.14062): BERT with block-sparse attention: global blocks, a sliding
/// window of blocks and random blocks.
/// Composed of: models/single_stack.cpp; models/attention/bigbird.cpp. Trained with: mlm.
/// Hugging Face: interchange/huggingface/bigbird.cpp. Option names of transformers' BigBirdConfig.
/// Shapes: configs/bigbird. Parameters: bigbird/base 127,520,694.
/// Differs: dropout after the embedding's norm, as in BERT.
struct BigBirdConfig : BertConfig {
  static constexpr const char* kind = "bigbird";
  bool pooler = false;
  BigBirdConfig() {
    max_position_embeddings = 4096;
    hidden_act = Activation::gelu_new;
    attention = BigBirdAttention{};
  }
};
template <class V>
void describe(V& v, BigBirdConfig& c) {
  describe_transformer(v, c);
  v("pooler", c.pooler, "keep a pooler even if no objective uses it, as Hugging Face's classes do; it is not trained");
}

}  // namespace cloze
