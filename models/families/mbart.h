#pragma once
#include "models/families/bart.h"

namespace cloze {

/// mBART (Liu et al. 2020, arXiv 2001.08210, section 2.2): BART with pre-norm blocks and scaled embeddings; the
/// decoder's input starts with the last token of its target, the language id.
/// Composed of: models/encoder_decoder.cpp. Trained with: denoising, pairs.
/// Hugging Face: interchange/huggingface/bart.cpp.
struct MBartConfig : BartConfig {
  static constexpr const char* kind = "mbart";
  MBartConfig() {
    norm_place = NormPlacement::pre;
    scale_embedding = true;
    decoder_starts_with_last_target = true;
    prepend_bos = false;
  }
};

}  // namespace cloze
