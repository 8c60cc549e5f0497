#pragma once
#include "models/families/bert.h"
#include "models/stack_parts.h"

namespace cloze {

/// ELECTRA (Clark et al. 2020, arXiv 2003.10555, section 2): BERT with a separate embedding width, trained as a
/// discriminator: a small generator fills masked positions, and the discriminator predicts for every token whether it
/// was replaced. Generator and discriminator share their embeddings. In google-research/electra, the source of
/// initializer: truncated_normal, the embedding projection and the discriminator's output layer are Glorot uniform.
/// Composed of: models/single_stack.cpp, twice; EmbeddingProjection of models/stack_parts.h. Trained with: rtd
/// (objectives/rtd/head.cpp); mlm trains a generator only.
/// Hugging Face: interchange/huggingface/electra.cpp, one folder for each network. Option names of transformers'
/// ElectraConfig.
/// Shapes: configs/electra. Parameters of both networks: electra/small 14,196,219; electra/base 119,386,427.
struct ElectraConfig : BertConfig, EmbeddingProjection {
  static constexpr const char* kind = "electra";
  static constexpr bool base_model_has_pooler = false;
  ElectraConfig() {
    embedding_size = 128;
    hidden_size = 256;
    num_attention_heads = 4;
    intermediate_size = 1024;
    gelu_head = true;
    xavier_embedding_projection = true;
  }
};
template <class V>
void describe(V& v, ElectraConfig& c) {
  describe_transformer(v, c);
  v("embedding_size", c.embedding_size,
    "width of the embeddings, projected to hidden_size if different; 0 = hidden_size", in_range(0, limits::width));
}

}  // namespace cloze
