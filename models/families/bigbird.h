#pragma once
#include "models/config.h"

namespace cloze {

/// BigBird (Zaheer et al. 2020, arXiv 2007.14062): BERT whose queries attend to blocks of keys: global ones, the
/// neighbouring ones and random ones.
/// Composed of: models/single_stack.cpp; models/attention/bigbird.cpp. Trained with: mlm.
/// Shapes: configs/bigbird. Option names of transformers' BigBirdConfig.
/// Differs: dropout after the embedding's norm, as in BERT.
struct BigBirdConfig : BackboneConfig {
  static constexpr const char* kind = "bigbird";
  BigBirdConfig() {
    max_position_embeddings = 4096;
    hidden_act = "gelu_new";
    attention = BigBirdAttention{};
  }
};
template <class V>
void describe(V& v, BigBirdConfig& c) {
  describe_backbone(v, c);
  v("pooler", c.pooler,
    "a pooler is carried along where no objective reads one, as Hugging Face's classes have it; it is not trained");
}

}  // namespace cloze
