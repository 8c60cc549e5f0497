#pragma once
// Kinds of attention, as they stand in YAML. Field names are those of Hugging Face's config.json.
#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace cloze {

/// Scaled dot-product attention in which every query scores every key.
/// Source: Vaswani et al. 2017, equation 1 (arXiv 1706.03762).
struct FullAttention {
  static constexpr const char* kind = "full";
};
template <class V>
void describe(V&, FullAttention&) {}

/// Tokens that attend to all others, and all others to them.
enum class GlobalTokens { first, none };
constexpr auto choices(GlobalTokens) {
  return std::array{Choice{GlobalTokens::first, "first", "the [CLS] of each sequence"},
                    Choice{GlobalTokens::none, "none", ""}};
}

/// A sliding window, with a few tokens that see and are seen by everything.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150).
struct WindowAttention {
  static constexpr const char* kind = "window";
  std::vector<int64_t> attention_window{512};
  std::vector<int64_t> attention_dilation{1};
  int64_t dilated_heads = 0;
  GlobalTokens global_tokens = GlobalTokens::first;
};
template <class V>
void describe(V& v, WindowAttention& c) {
  v("attention_window", c.attention_window,
    "keys that a query attends to besides its own, half of them on either side [tokens]; one number for all layers, "
    "or a list with one for each",
    multiples_of(2, 1 << 24));
  v("attention_dilation", c.attention_dilation,
    "distance between the keys of a window: 1 = adjacent, 3 = every third; one number for all layers, or a list with "
    "one for each",
    in_range(1, 1 << 24));
  v("dilated_heads", c.dilated_heads, "heads, from the first on, whose windows are dilated; 0 = all",
    in_range(0, 1 << 14));
  v("global_tokens", c.global_tokens, "tokens that attend to all others, and all others to them");
}

/// The number of layer `layer` in a list that has one for all, or one for each.
inline int64_t of_layer(const std::vector<int64_t>& list, int64_t layer) {
  return list[list.size() == 1 ? 0 : static_cast<size_t>(layer) % list.size()];
}

/// The kernel that random features estimate.
enum class FeatureKernel { softmax, relu, trigonometric };
constexpr auto choices(FeatureKernel) {
  return std::array{
      Choice{FeatureKernel::softmax, "softmax", "positive features of the softmax kernel"},
      Choice{FeatureKernel::relu, "relu", "those of a generalised one"},
      Choice{FeatureKernel::trigonometric, "trigonometric", "sines and cosines, unstable, for comparison"}};
}

/// FAVOR+: softmax attention estimated by random features, linear in the length. There are no probabilities, so none
/// are dropped. Source: Choromanski et al. 2021, section 2 (arXiv 2009.14794). Differs: a causal query's features are
/// stabilised by the keys up to its own place, so that nothing of the future reaches it.
struct PerformerAttention {
  static constexpr const char* kind = "performer";
  int64_t nb_features = 256;
  FeatureKernel kernel = FeatureKernel::softmax;
  double kernel_epsilon = 1e-6;
  int64_t feature_redraw_interval = 1000;
};
template <class V>
void describe(V& v, PerformerAttention& c) {
  v("nb_features", c.nb_features, "random features of a head", in_range(1, 1 << 20));
  v("kernel", c.kernel, "the kernel that features estimate");
  v("kernel_epsilon", c.kernel_epsilon, "added to every positive feature", in_range(0, 1));
  v("feature_redraw_interval", c.feature_redraw_interval,
    "steps between draws of the features; 0 = they stay as first drawn", at_least(0));
}

/// Keys and values compressed over time to a fixed number of slots. Not causal.
/// Source: Wang et al. 2020, section 4 (arXiv 2006.04768); fairseq, examples/linformer. Differs: padded places add
/// nothing to a slot.
struct LinformerAttention {
  static constexpr const char* kind = "linformer";
  int64_t compressed = 4;
  bool shared_kv_compressed = false;
};
template <class V>
void describe(V& v, LinformerAttention& c) {
  v("compressed", c.compressed, "max_position_embeddings is divided by it to give the number of slots",
    in_range(1, 1 << 28));
  v("shared_kv_compressed", c.shared_kv_compressed, "keys and values are compressed by the same weights");
}

/// Blocks of keys: the first and the last, three around the query's own, and a few at random, for each head others.
/// Source: Zaheer et al. 2020, section 2 (arXiv 2007.14062). Differs: a block is counted once however often it was
/// chosen; random blocks are the same in training and evaluation, and at every length.
struct BigBirdAttention {
  static constexpr const char* kind = "bigbird";
  int64_t block_size = 64;
  int64_t num_random_blocks = 3;
};
template <class V>
void describe(V& v, BigBirdAttention& c) {
  v("block_size", c.block_size, "tokens in a block", in_range(1, 1 << 24));
  v("num_random_blocks", c.num_random_blocks,
    "blocks that the queries of a block see beside first, last and neighbours", in_range(0, 1 << 16));
}

using AttentionConfig =
    std::variant<FullAttention, WindowAttention, PerformerAttention, LinformerAttention, BigBirdAttention>;

/// How a stack knows the order of its tokens, besides biases of scores.
enum class PositionEmbeddings {
  learned,
  sinusoidal,
  sinusoidal_halves,
  sinusoidal_start,
  none,
  relative_key,
  relative_key_query
};
constexpr auto choices(PositionEmbeddings) {
  using enum PositionEmbeddings;
  return std::array{
      Choice{learned, "learned", "a table"},
      Choice{sinusoidal, "sinusoidal", "sines and cosines that are not trained"},
      Choice{sinusoidal_halves, "sinusoidal_halves", "not trained, all sines before all cosines"},
      Choice{sinusoidal_start, "sinusoidal_start", "a table that starts as sines and cosines"},
      Choice{none, "none", "positions come from attention alone"},
      Choice{relative_key, "relative_key",
             "no table, but in every layer a vector for each distance, which is multiplied with queries and added to "
             "scores (Shaw et al. 2018, equation 5)"},
      Choice{relative_key_query, "relative_key_query", "with keys too (Huang et al. 2020, method 4)"}};
}

/// What the attention of every layer of a stack is made of.
struct AttentionSizes {
  int64_t hidden_size = 768;
  int64_t num_attention_heads = 12;
  int64_t d_kv = 0;  ///< width of a head; 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings = 512;
  PositionEmbeddings position_embeddings = PositionEmbeddings::learned;
  int64_t relative_positions = 0;
  AttentionConfig attention{};
  bool linear_bias = true;   ///< linear layers of blocks have biases
  bool scale_scores = true;  ///< by 1 / sqrt(C)

  /// Attention computes its scores from vectors of distances, and there is no table of positions.
  bool scores_distances() const {
    return position_embeddings == PositionEmbeddings::relative_key ||
           position_embeddings == PositionEmbeddings::relative_key_query;
  }
  int64_t head_width() const { return d_kv > 0 ? d_kv : hidden_size / num_attention_heads; }
  /// Of all heads together.
  int64_t heads_width() const { return head_width() * num_attention_heads; }
};

}  // namespace cloze
