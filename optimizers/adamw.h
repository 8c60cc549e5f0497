#pragma once
#include "optimizers/adam.h"

namespace cloze {

/// Source: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101).
struct AdamW : AdamMoments {
  static constexpr const char* kind = "adamw";
  static constexpr const char* words = "";
  static constexpr bool elementwise = true;
  void update(const optimizers::Step& step, const optimizers::Target& target) const;
  void update(const optimizers::Step& step, const optimizers::Buffers& buffers) const;
  void update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const;
};
template <class V>
void describe(V& v, AdamW& c) {
  describe(v, static_cast<AdamMoments&>(c));
}

}  // namespace cloze
