#pragma once
#include "models/attention/kinds.h"
#include "models/families/bert.h"

namespace cloze {

/// Performer (Choromanski et al. 2021, arXiv 2009.14794): BERT whose softmax attention is approximated by random
/// features (FAVOR+), so that time and memory are linear in the length.
/// Composed of: models/single_stack.cpp; models/attention/performer.cpp. Trained with: mlm; with architecture: decoder,
/// clm.
/// Hugging Face: no class.
/// Shapes: configs/performer.
struct PerformerConfig : BertConfig {
  static constexpr const char* kind = "performer";
  PerformerConfig() { attention = PerformerAttention{}; }
};

}  // namespace cloze
