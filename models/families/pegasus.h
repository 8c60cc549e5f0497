#pragma once
#include "models/families/bart.h"

namespace cloze {

/// PEGASUS (Zhang et al. 2020, arXiv 1912.08777, section 5; transformers, models/pegasus): mBART without a norm after
/// the embeddings, with sinusoidal positions. Composed of: models/encoder_decoder.cpp. Trained with:
/// gap_sentences.
/// Hugging Face: interchange/huggingface/bart.cpp.
struct PegasusConfig : BartConfig {
  static constexpr const char* kind = "pegasus";
  PegasusConfig() {
    norm_place = NormPlacement::pre;
    hidden_act = Activation::relu;
    positions = PositionTable::sinusoidal_halves;
    pad_token_id = 0;
    max_position_embeddings = 512;
    scale_embedding = true;
    embedding_norm = false;
    prepend_bos = false;
    position_offset = 0;
    decoder_start = DecoderStart::padding;
    decoder_start_token_id = 0;
    eos_token_id = 1;
  }
};

}  // namespace cloze
