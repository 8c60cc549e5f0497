#pragma once
#include "models/config.h"

namespace cloze {

/// ALBERT (Lan et al. 2020, arXiv 1909.11942, section 3.1): BERT with factorised embeddings (narrow, then projected to
/// the hidden width) and cross-layer parameter sharing, so that the number of parameters does not grow with depth.
/// Sentence order prediction replaces next sentence prediction. Composed of: models/single_stack.cpp; groups of layers:
/// models/stack.cpp. Trained with: mlm over n-grams and sop. Shapes: configs/albert. Option names of transformers'
/// AlbertConfig.
struct AlbertConfig : BackboneConfig {
  static constexpr const char* kind = "albert";
  AlbertConfig() {
    embedding_size = 128;
    num_hidden_groups = 1;
    hidden_act = "gelu_new";
    hidden_dropout_prob = 0;
    attention_probs_dropout_prob = 0;
    always_project_embeddings = true;
  }
};
template <class V>
void describe(V& v, AlbertConfig& c) {
  describe_backbone(v, c);
  v("embedding_size", c.embedding_size, "width of the embeddings, projected to hidden_size; 0 = hidden_size",
    in_range(0, limits::width));
  v("num_hidden_groups", c.num_hidden_groups, "number of layer groups; the layers of a group share their weights",
    in_range(1, limits::layers));
  v("inner_group_num", c.inner_group_num, "consecutive blocks in a layer", in_range(1, 64));
  v("share", c.share, "the weights that the layers of a group share (table 4 of the paper)");
}

}  // namespace cloze
