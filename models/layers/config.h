#pragma once
// Kinds of layers, as they stand in YAML.
#include "core/config.h"

namespace cloze {

enum class NormKind { layer, rms };
constexpr auto choices(NormKind) {
  return std::array{Choice{NormKind::layer, "layer", "layer norm"},
                    Choice{NormKind::rms, "rms", "without mean and bias"}};
}

}  // namespace cloze
