#pragma once
#include "models/families/bert.h"

namespace cloze {

/// RoBERTa (Liu et al. 2019, arXiv 1907.11692): BERT without segments, trained longer on full sentences with
/// dynamic masking (drawn again in every epoch). Position ids start at the padding id + 1, as in fairseq,
/// models/roberta; the prediction head has exact GELU. Composed of: models/single_stack.cpp. Trained with: mlm.
/// Hugging Face: interchange/huggingface/roberta.cpp, with XLM-RoBERTa and CamemBERT. Option names of transformers'
/// RobertaConfig.
/// Shapes: configs/roberta. Parameters: roberta/base 124,697,433.
struct RobertaConfig : BertConfig {
  static constexpr const char* kind = "roberta";
  RobertaConfig() {
    max_position_embeddings = 514;
    type_vocab_size = 1;
    layer_norm_eps = 1e-5;
    pad_token_id = 1;
    initializer = Initializer::normal;
    freeze_pad_embedding = true;
    positions_after_padding = true;
    gelu_head = true;
  }
};

}  // namespace cloze
