#pragma once
// What parameters are for; without LibTorch, for configs.
#include <array>

#include "core/config/config_rule.h"

namespace cloze {

/// The role of a parameter, whatever its shape: weight decay and LAMB's trust ratio depend on it, and groups of an
/// optimizer may. A score bias is added to attention scores or to the queries they are computed from: T5's
/// relative_attention_bias, XLNet's r_w_bias, r_r_bias and r_s_bias. `any` is that of a group, never of a parameter.
enum class Role { any, weight, embedding, bias, score_bias, norm };
constexpr auto choices(Role) {
  using enum Role;
  return std::array{
      Choice{any, "any"},   Choice{weight, "weight", "of linear maps: matrices"},    Choice{embedding, "embedding"},
      Choice{bias, "bias"}, Choice{score_bias, "score_bias", "of attention scores"}, Choice{norm, "norm"}};
}

}  // namespace cloze
