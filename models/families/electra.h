#pragma once
#include "models/config.h"

namespace cloze {

/// ELECTRA (Clark et al. 2020, arXiv 2003.10555, section 2): BERT with an embedding width of its own, trained as a
/// discriminator: a small generator fills masked positions, and the discriminator tells for every token whether it was
/// replaced. Generator and discriminator share their embeddings. In google-research/electra, to which initializer:
/// truncated_normal belongs, the projection of embeddings and the discriminator's output are Glorot uniform.
/// Composed of: models/single_stack.cpp, twice. Trained with: rtd (objectives/replaced_token.cpp); mlm trains a
/// generator alone.
/// Shapes: configs/electra. Option names of transformers' ElectraConfig.
struct ElectraConfig : BackboneConfig {
  static constexpr const char* kind = "electra";
  ElectraConfig() {
    embedding_size = 128;
    hidden_size = 256;
    num_attention_heads = 4;
    intermediate_size = 1024;
    gelu_head = true;
    bare_pooler = false;
    glorot_projection = true;
  }
};
template <class V>
void describe(V& v, ElectraConfig& c) {
  describe_backbone(v, c);
  v("embedding_size", c.embedding_size,
    "width of the embeddings, projected to hidden_size where that differs; 0 = hidden_size", in_range(0, most::width));
}

}  // namespace cloze
