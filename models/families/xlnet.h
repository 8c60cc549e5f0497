#pragma once
#include "models/two_stream_config.h"

namespace cloze {

/// XLNet (Yang et al. 2019, arXiv 1906.08237, section 2; zihangdai/xlnet, modeling.py): the tokens of a text are
/// predicted in a random order. The content stream encodes tokens, the query stream predicts them without access to
/// their content; both use relative positions and relative segments, and attend to the recurrence memory (mems) of
/// earlier segments. Composed of: models/two_stream.cpp. Trained with: plm.
/// Hugging Face: interchange/huggingface/xlnet.cpp. Option names shared with BERT (d_model = hidden_size) and of
/// transformers' XLNetConfig.
/// Shapes: configs/xlnet. Parameters: xlnet/base 116,750,336; xlnet/large 360,300,800.
/// Differs: every layer has score biases of its own (untie_r), as in the pretraining.
struct XlnetConfig : TwoStreamConfig {
  static constexpr const char* kind = "xlnet";
  XlnetConfig() {
    type_vocab_size = 3;
    pad_token_id = 5;
    positions = PositionTable::none;
    initializer = Initializer::normal;
    activation_dropout = 0.1;
    logits_bias = LogitsBias::trained;
    embedding_norm = false;
  }
};
template <class V>
void describe(V& v, XlnetConfig& c) {
  describe_transformer(v, c);
  v("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer", in_range(0, 1, open_end));
  v("attn_type", c.attn_type, "direction of attention");
  v("clamp_len", c.clamp_len, "distances are clamped to this one [tokens]; -1 = no clamping",
    in_range(-1, limits::tokens));
  v("mem_len", c.mem_len,
    "length of the recurrence memory: states of earlier segments that each layer keeps for the next one [tokens]; 0 = "
    "training carries no mems, and inference keeps all states",
    in_range(0, limits::tokens));
  v("reuse_len", c.reuse_len,
    "number of states at the start of a segment that go into the mems; in training the next segment begins after them "
    "[tokens]; 0 = all of them",
    in_range(0, limits::tokens));
  v("bi_data", c.bi_data, "in training half of the rows have reversed texts: their distances change sign");
  v("same_length", c.same_length,
    "attn_type uni: every token attends to itself and to as many earlier tokens as the mems hold");
}

}  // namespace cloze
