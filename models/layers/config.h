#pragma once
// The layer options of the YAML config.
#include "core/config.h"

namespace cloze {

enum class NormKind { layer, rms };
constexpr auto choices(NormKind) {
  return std::array{Choice{NormKind::layer, "layer", "layer norm"},
                    Choice{NormKind::rms, "rms", "RMS norm, without mean and bias"}};
}

/// The norms of a network.
struct NormConfig {
  NormKind norm_kind = NormKind::layer;
  double layer_norm_eps = 1e-12;
  bool norm_bias = true;  ///< of layer norms; RMS norms have none
};

/// Biases of the head that predicts tokens.
struct TokenHeadConfig {
  bool classifier_bias = true;  ///< of its dense layer
  bool decoder_bias = true;     ///< of the logits
};

}  // namespace cloze
