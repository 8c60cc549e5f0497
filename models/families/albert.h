#pragma once
#include "models/families/bert.h"
#include "models/stack_parts.h"

namespace cloze {

/// ALBERT (Lan et al. 2020, arXiv 1909.11942, section 3.1): BERT with factorised embeddings (narrow, then projected to
/// the hidden width) and cross-layer parameter sharing, so that the number of parameters does not grow with depth.
/// Sentence order prediction replaces next sentence prediction. Composed of: models/single_stack.cpp;
/// EmbeddingProjection and LayerSharing of models/stack_parts.h. Trained with: mlm over n-grams and sop.
/// Hugging Face: interchange/huggingface/albert.cpp. Option names of transformers' AlbertConfig.
/// Shapes: configs/albert. Parameters: albert/base 11,813,810; albert/xxlarge 223,158,450.
struct AlbertConfig : BertConfig, EmbeddingProjection, LayerSharing {
  static constexpr const char* kind = "albert";
  AlbertConfig() {
    embedding_size = 128;
    num_hidden_groups = 1;
    hidden_act = Activation::gelu_new;
    hidden_dropout_prob = 0;
    attention_probs_dropout_prob = 0;
    always_project_embeddings = true;
  }

 protected:
  int64_t own_blocks() const override { return groups_of(num_hidden_layers); }
};
template <class V>
void describe(V& v, AlbertConfig& c) {
  describe_transformer(v, c);
  v("embedding_size", c.embedding_size, "width of the embeddings, projected to hidden_size; 0 = hidden_size",
    in_range(0, limits::width));
  describe_sharing(v, c);
}

}  // namespace cloze
