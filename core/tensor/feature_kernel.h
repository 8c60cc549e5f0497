#pragma once
// The kernels that random features approximate; without LibTorch, for configs.
#include <array>

#include "core/config/config_rule.h"

namespace cloze {

/// The kernel that the random features approximate.
enum class FeatureKernel { softmax, relu, trigonometric };
constexpr auto choices(FeatureKernel) {
  return std::array{Choice{FeatureKernel::softmax, "softmax", "positive features of the softmax kernel"},
                    Choice{FeatureKernel::relu, "relu", "positive features of the generalised ReLU kernel"},
                    Choice{FeatureKernel::trigonometric, "trigonometric",
                           "sines and cosines of the softmax kernel, unstable, for comparison"}};
}

}  // namespace cloze
