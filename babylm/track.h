#pragma once
// The tracks of the BabyLM Challenge, without LibTorch.
#include <array>

#include "core/config_rule.h"

namespace cloze {

enum class BabylmTrack { strict_small, strict, interaction };
constexpr auto choices(BabylmTrack) {
  using enum BabylmTrack;
  return std::array{Choice{strict_small, "strict-small", "10 M words of text, checkpoints up to 100 M"},
                    Choice{strict, "strict", "100 M words of text, checkpoints up to 1,000 M"},
                    Choice{interaction, "interaction", "checkpoints as in strict"}};
}

}  // namespace cloze
