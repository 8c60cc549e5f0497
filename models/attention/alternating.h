#pragma once
#include <algorithm>
#include <vector>

#include "core/config/config_rule.h"
#include "core/contains.h"
#include "models/attention/sizes.h"

namespace cloze {

/// Full attention in every n-th layer, from the first on, and a sliding window in the others. Where positions are
/// rotary, each of the two has a base of its own. Source: Warner et al. 2024, section 2.1.2 (arXiv 2412.13663).
struct AlternatingAttention {
  static constexpr const char* kind = "alternating";
  static constexpr bool bounds_length = false, causal = false;
  int64_t global_attn_every_n_layers = 3;
  std::vector<int64_t> global_layers{};
  int64_t local_attention = 128;
  double global_rope_theta = 160000;
  double local_rope_theta = 10000;

  bool is_global(int64_t layer) const {
    if (global_layers.empty()) return layer % global_attn_every_n_layers == 0;
    return contains(global_layers, layer);
  }
  /// Keys on either side of its own that a query of a windowed layer attends to.
  int64_t window() const { return local_attention / 2; }

  static bool takes_unpadded_rows() { return true; }
  void check(const AttentionSizes&, int64_t layers, Constraints& constraints) const {
    const auto last = global_layers.empty() ? 0 : *std::max_element(global_layers.begin(), global_layers.end());
    constraints.forbid(!global_layers.empty() && last >= layers, "model.attention.global_layers names layer ", last,
                       " of a stack with ", layers, ", whose first one is 0; leave it out");
  }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;
};
template <class V>
void describe(V& v, AlternatingAttention& c) {
  v("global_attn_every_n_layers", c.global_attn_every_n_layers, "layers 0, n, 2 n, ... have full attention",
    in_range(1, 1 << 12));
  v("global_layers", c.global_layers, "layers with full attention, where they are not every n-th one; [] = they are",
    or_none(in_range(0, 1 << 12)));
  v("local_attention", c.local_attention,
    "keys that a query of the other layers attends to besides its own, half of them on either side [tokens]",
    in_range(0, 1 << 24));
  v("global_rope_theta", c.global_rope_theta,
    "base of the wavelengths of rotary positions in layers with full attention", in_range(1, 1e12));
  v("local_rope_theta", c.local_rope_theta, "the same in the other layers", in_range(1, 1e12));
}

}  // namespace cloze
