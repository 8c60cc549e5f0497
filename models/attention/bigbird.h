#pragma once
#include "core/config/config_rule.h"
#include "models/attention/sizes.h"

namespace cloze {

/// Block-sparse attention: the first and the last block (global), three blocks around the query's own (window), and a
/// few random blocks, drawn for each head. Source: Zaheer et al. 2020, section 2 (arXiv 2007.14062). Differs: a block
/// that is chosen twice counts once; random blocks are the same in training and evaluation, and at every length.
struct BigBirdAttention {
  static constexpr const char* kind = "bigbird";
  static constexpr bool bounds_length = true, causal = false;
  int64_t block_size = 64;
  int64_t num_random_blocks = 3;

  static bool takes_unpadded_rows() { return false; }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;
};
template <class V>
void describe(V& v, BigBirdAttention& c) {
  v("block_size", c.block_size, "tokens in a block", in_range(1, 1 << 24));
  v("num_random_blocks", c.num_random_blocks,
    "random blocks that a query block attends to, besides the global and the neighbouring ones", in_range(0, 1 << 16));
}

}  // namespace cloze
