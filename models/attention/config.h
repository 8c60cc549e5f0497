#pragma once
// The kinds of attention of the YAML config. Field names are those of Hugging Face's config.json. Only files that name
// a kind include this one; others know AttentionConfig (sizes.h).
#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config_rule.h"
#include "core/contains.h"
#include "core/tensor/feature_kernel.h"

namespace cloze {

/// Scaled dot-product attention in which every query scores every key.
/// Source: Vaswani et al. 2017, equation 1 (arXiv 1706.03762).
struct FullAttention {
  static constexpr const char* kind = "full";
  static constexpr bool bounds_length = false;
};
template <class V>
void describe(V&, FullAttention&) {}

/// Which tokens are global: they attend to all others, and all others attend to them.
enum class GlobalTokens { first, none };
constexpr auto choices(GlobalTokens) {
  return std::array{Choice{GlobalTokens::first, "first", "the [CLS] of each sequence"},
                    Choice{GlobalTokens::none, "none", ""}};
}

/// Sliding-window attention, with a few global tokens that attend to all tokens and are attended to by all.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150).
struct WindowAttention {
  static constexpr const char* kind = "window";
  static constexpr bool bounds_length = false;
  std::vector<int64_t> attention_window{512};
  std::vector<int64_t> attention_dilation{1};
  int64_t dilated_heads = 0;
  GlobalTokens global_tokens = GlobalTokens::first;
};
template <class V>
void describe(V& v, WindowAttention& c) {
  v("attention_window", c.attention_window,
    "keys that a query attends to besides its own, half of them on either side [tokens]; one number for all layers, "
    "or a list with one number per layer",
    multiples_of(2, 1 << 24));
  v("attention_dilation", c.attention_dilation,
    "distance between the keys of a window: 1 = adjacent, 3 = every third; one number for all layers, or a list with "
    "one number per layer",
    in_range(1, 1 << 24));
  v("dilated_heads", c.dilated_heads, "number of heads, from the first on, with dilated windows; 0 = all",
    in_range(0, 1 << 14));
  v("global_tokens", c.global_tokens, "global tokens, which attend to all others and are attended to by all");
}

/// The value for layer `layer` of a list with one value for all layers, or one per layer.
inline int64_t of_layer(const std::vector<int64_t>& list, int64_t layer) {
  return list[list.size() == 1 ? 0 : static_cast<size_t>(layer) % list.size()];
}

/// FAVOR+: softmax attention approximated by random features, linear in the length. There are no attention
/// probabilities, hence no dropout on them. Source: Choromanski et al. 2021, section 2 (arXiv 2009.14794). Differs: the
/// features of a causal query are stabilised by the keys up to its own position, so that nothing of the future leaks
/// in.
struct PerformerAttention {
  static constexpr const char* kind = "performer";
  static constexpr bool bounds_length = false;
  int64_t nb_features = 256;
  FeatureKernel kernel = FeatureKernel::softmax;
  double kernel_epsilon = 1e-6;
  int64_t feature_redraw_interval = 1000;
};
template <class V>
void describe(V& v, PerformerAttention& c) {
  v("nb_features", c.nb_features, "number of random features per head", in_range(1, 1 << 20));
  v("kernel", c.kernel, "the kernel that the features approximate");
  v("kernel_epsilon", c.kernel_epsilon, "added to every positive feature", in_range(0, 1));
  v("feature_redraw_interval", c.feature_redraw_interval, "steps between redraws of the features; 0 = never redrawn",
    at_least(0));
}

/// Keys and values projected along the sequence to a fixed number of positions. Not causal.
/// Source: Wang et al. 2020, section 4 (arXiv 2006.04768); fairseq, examples/linformer. Differs: padded positions add
/// nothing to the projection.
struct LinformerAttention {
  static constexpr const char* kind = "linformer";
  static constexpr bool bounds_length = true;
  int64_t compressed = 4;
  bool shared_kv_compressed = false;
};
template <class V>
void describe(V& v, LinformerAttention& c) {
  v("compressed", c.compressed,
    "compression factor: keys and values are projected to max_position_embeddings / compressed positions",
    in_range(1, 1 << 28));
  v("shared_kv_compressed", c.shared_kv_compressed, "keys and values share one projection");
}

/// Block-sparse attention: the first and the last block (global), three blocks around the query's own (window), and a
/// few random blocks, drawn for each head. Source: Zaheer et al. 2020, section 2 (arXiv 2007.14062). Differs: a block
/// that is chosen twice counts once; random blocks are the same in training and evaluation, and at every length.
struct BigBirdAttention {
  static constexpr const char* kind = "bigbird";
  static constexpr bool bounds_length = true;
  int64_t block_size = 64;
  int64_t num_random_blocks = 3;
};
template <class V>
void describe(V& v, BigBirdAttention& c) {
  v("block_size", c.block_size, "tokens in a block", in_range(1, 1 << 24));
  v("num_random_blocks", c.num_random_blocks,
    "random blocks that a query block attends to, besides the global and the neighbouring ones", in_range(0, 1 << 16));
}

/// Full attention in every n-th layer, from the first on, and a sliding window in the others. Where positions are
/// rotary, each of the two has a base of its own. Source: Warner et al. 2024, section 2.1.2 (arXiv 2412.13663).
struct AlternatingAttention {
  static constexpr const char* kind = "alternating";
  static constexpr bool bounds_length = false;
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

/// The kinds: a config's attention is one of them.
struct AttentionKind : std::variant<FullAttention, WindowAttention, AlternatingAttention, PerformerAttention,
                                    LinformerAttention, BigBirdAttention> {
  using variant::variant;
};

}  // namespace cloze
