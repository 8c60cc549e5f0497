#pragma once
#include "models/recurrent_config.h"

namespace cloze {

/// An LSTM language model (Zaremba et al. 2014, arXiv 1409.2329, sections 3.1 and 3.2): layers of long short-term
/// memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000), with dropout between layers and
/// none from token to token. The output embedding is tied to the input's (Press and Wolf 2017, arXiv 1608.05859). It is
/// the baseline of studies of what Transformers learn, such as Gulordava et al. 2018 (arXiv 1803.11138). Composed of:
/// models/recurrent.cpp. Trained with: clm, and with the encoder-decoder objectives, whose source and target are
/// concatenated. Hugging Face: no class. Shapes: configs/lstm. Differs: a text begins with a state of zeros, where they
/// carry that of the text before it; 1 is added to forget gates (Jozefowicz et al. 2015, section 2.2).
struct LstmConfig : RecurrentConfig {
  static constexpr const char* kind = "lstm";
  LstmConfig() {
    hidden_size = 650;
    num_hidden_layers = 2;
    hidden_dropout_prob = 0.5;
    initializer = Initializer::xavier;
  }
};
template <class V>
void describe(V& v, LstmConfig& c) {
  describe_vocabulary(v, c);
  v("hidden_size", c.hidden_size, "width of embeddings and layers", in_range(1, limits::width));
  v("num_hidden_layers", c.num_hidden_layers, "layers", in_range(1, limits::layers));
  v("hidden_dropout_prob", c.hidden_dropout_prob, "dropout before each layer and after the last one",
    in_range(0, 1, open_end));
  describe_initial_weights(v, c);
  describe_padding(v, c);
  describe_tying(v, c);
  describe_text_ids(v, c);
}

}  // namespace cloze
