#pragma once
#include "core/config/config_rule.h"
#include "models/attention/sizes.h"

namespace cloze {

/// Keys and values projected along the sequence to a fixed number of positions. Not causal.
/// Source: Wang et al. 2020, section 4 (arXiv 2006.04768); fairseq, examples/linformer. Differs: padded positions add
/// nothing to the projection.
struct LinformerAttention {
  static constexpr const char* kind = "linformer";
  static constexpr bool bounds_length = true, causal = false;
  int64_t compressed = 4;
  bool shared_kv_compressed = false;

  static bool takes_unpadded_rows() { return false; }
  void check(const AttentionSizes& sizes, int64_t, Constraints& constraints) const {
    constraints.forbid(compressed > sizes.max_position_embeddings, "model.attention.compressed ", compressed,
                       " is more than model.max_position_embeddings ", sizes.max_position_embeddings, "; lower it");
  }
  /// Its projections along the sequence.
  double weights(const AttentionSizes& sizes) const {
    const auto positions = sizes.max_position_embeddings;
    return static_cast<double>((shared_kv_compressed ? 1 : 2) * (positions / compressed) * positions);
  }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;
};
template <class V>
void describe(V& v, LinformerAttention& c) {
  v("compressed", c.compressed,
    "compression factor: keys and values are projected to max_position_embeddings / compressed positions",
    in_range(1, 1 << 28));
  v("shared_kv_compressed", c.shared_kv_compressed, "keys and values share one projection");
}

}  // namespace cloze
