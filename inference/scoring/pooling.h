#pragma once
// How the states of a text's tokens become one vector, without LibTorch.
#include <array>

#include "core/config/config_rule.h"

namespace cloze {

/// The tokens whose states are averaged.
enum class Pooling { mean, cls, first_last };
constexpr auto choices(Pooling) {
  return std::array{
      Choice{Pooling::mean, "mean", "the mean over all tokens"}, Choice{Pooling::cls, "cls", "the state of [CLS]"},
      Choice{Pooling::first_last, "first-last", "the mean over all tokens of the first and the last layer together"}};
}

}  // namespace cloze
