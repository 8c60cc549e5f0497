#pragma once
#include "models/attention/sizes.h"

namespace cloze {

/// Scaled dot-product attention in which every query scores every key.
/// Source: Vaswani et al. 2017, equation 1 (arXiv 1706.03762).
struct FullAttention {
  static constexpr const char* kind = "full";
  static constexpr bool bounds_length = false, causal = true;

  static bool takes_unpadded_rows() { return true; }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;
};
template <class V>
void describe(V&, FullAttention&) {}

}  // namespace cloze
