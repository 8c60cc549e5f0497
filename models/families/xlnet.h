#pragma once
#include "models/config.h"

namespace cloze {

/// XLNet (Yang et al. 2019, arXiv 1906.08237, section 2; zihangdai/xlnet, modeling.py): the tokens of a text are
/// predicted in a random order. A content stream reads tokens, a query stream predicts them without seeing them; both
/// attend by relative positions and relative segments, and to a recurrence memory of earlier segments. Composed of:
/// models/two_stream.cpp. Trained with: plm. Shapes: configs/xlnet. Option names shared with BERT (d_model =
/// hidden_size) and of transformers' XLNetConfig. Differs: the biases of scores belong to each layer (untie_r), as in
/// the pretraining.
struct XlnetConfig : TwoStreamConfig {
  static constexpr const char* kind = "xlnet";
  XlnetConfig() {
    type_vocab_size = 3;
    pad_token_id = 5;
    position_embeddings = PositionEmbeddings::none;
    initializer = Initializer::normal;
    activation_dropout = 0.1;
    logits_bias = LogitsBias::trained;
    bare_pooler = false;
    embedding_norm = false;
  }
};
template <class V>
void describe(V& v, XlnetConfig& c) {
  describe_backbone(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("attn_type", c.attn_type, "what tokens attend to");
  v("clamp_len", c.clamp_len, "distances beyond this one count as this one [tokens]; -1 = none do",
    in_range(-1, most::tokens));
  v("mem_len", c.mem_len,
    "states of earlier segments that each layer keeps for the next one [tokens]; 0 = training carries no memory, and "
    "other uses keep all of them",
    in_range(0, most::tokens));
  v("reuse_len", c.reuse_len,
    "of a segment, only so many first states go into the memory, and in training the next one begins after them "
    "[tokens]; 0 = all of them",
    in_range(0, most::tokens));
  v("bi_data", c.bi_data,
    "in training half of the rows read their texts from right to left: their distances change sign");
  v("same_length", c.same_length, "attn_type uni: every token attends to as many as the memory is long, and itself");
}

}  // namespace cloze
