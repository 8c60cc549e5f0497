#pragma once
#include "optimizers/adam.h"

namespace cloze {

/// Source: You et al. 2020, algorithm 2 (arXiv 1904.00962), norms of whole tensors, not clamped, as in
/// google-research/albert.
struct Lamb : AdamMoments {
  static constexpr const char* kind = "lamb";
  static constexpr const char* words = "the step of each tensor is scaled to the norm of the tensor";
  void update(const optimizers::Step& step, const optimizers::Target& target) const;
  void update(const optimizers::Step& step, const optimizers::Buffers& buffers) const;
  void update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const;
};
template <class V>
void describe(V& v, Lamb& c) {
  describe(v, static_cast<AdamMoments&>(c));
}

}  // namespace cloze
