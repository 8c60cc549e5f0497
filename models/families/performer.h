#pragma once
#include "models/config.h"

namespace cloze {

/// Performer (Choromanski et al. 2021, arXiv 2009.14794): BERT whose softmax attention is approximated by random
/// features (FAVOR+), so that time and memory are linear in the length.
/// Composed of: models/single_stack.cpp; models/attention/performer.cpp. Trained with: mlm; with architecture: decoder,
/// clm. Not in transformers.
/// Shapes: configs/performer.
struct PerformerConfig : BackboneConfig {
  static constexpr const char* kind = "performer";
  PerformerConfig() { attention = PerformerAttention{}; }
};

}  // namespace cloze
