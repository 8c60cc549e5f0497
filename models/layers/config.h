#pragma once
// The layer options of the YAML config.
#include "core/config.h"

namespace cloze {

enum class NormKind { layer, rms };
constexpr auto choices(NormKind) {
  return std::array{Choice{NormKind::layer, "layer", "layer norm"},
                    Choice{NormKind::rms, "rms", "RMS norm, without mean and bias"}};
}

}  // namespace cloze
