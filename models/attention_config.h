#pragma once
// Kinds of attention, as they stand in YAML. Field names are those of Hugging Face's config.json.
#include <algorithm>
#include <charconv>
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

/// A sliding window, with a few tokens that see and are seen by everything.
/// Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150).
struct WindowAttention {
  static constexpr const char* kind = "window";
  std::string attention_window = "512";
  std::string attention_dilation = "1";
  int64_t dilated_heads = 0;
  std::string global_tokens = "first";
};
template <class V>
void describe(V& v, WindowAttention& c) {
  v("attention_window", c.attention_window,
    "keys that a query sees, half of them on either side [tokens], even; one number for all layers, or one for each, "
    "separated by commas");
  v("attention_dilation", c.attention_dilation,
    "steps between the keys of a window: 1 = side by side, 3 = every third; one number for all layers, or one for "
    "each");
  v("dilated_heads", c.dilated_heads, "heads, from the first on, whose windows are dilated; 0 = all",
    in_range(0, 1 << 14));
  v("global_tokens", c.global_tokens,
    "tokens that see and are seen by everything: first = the [CLS] of each sequence, or none",
    one_of({"first", "none"}));
}

/// Numbers separated by commas, at least `least` and multiples of `step`. Throws ConfigError.
inline std::vector<int64_t> numbers_in(const std::string& name, const std::string& text, int64_t least, int64_t step) {
  std::vector<int64_t> found;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    require<ConfigError>(error == std::errc() && stop == word.data() + word.size() && value >= least &&
                             value % step == 0 && value <= 1 << 24,
                         name, " '", text, "' must be ", step == 2 ? "even numbers" : "numbers", " of at least ", least,
                         ", one for all layers or one for each: ", 32 * least, ", or ", least, ",", 2 * least, ",",
                         4 * least);
    found.push_back(value);
    begin = end + 1;
  }
  return found;
}
/// The windows and dilations of a config, one or as many as layers. Throws ConfigError.
inline std::vector<int64_t> windows_of(const WindowAttention& c) {
  return numbers_in("attention_window", c.attention_window, 2, 2);
}
inline std::vector<int64_t> dilations_of(const WindowAttention& c) {
  return numbers_in("attention_dilation", c.attention_dilation, 1, 1);
}
/// The number of layer `layer` in a list that has one for all, or one for each.
inline int64_t of_layer(const std::vector<int64_t>& list, int64_t layer) {
  return list[list.size() == 1 ? 0 : static_cast<size_t>(layer) % list.size()];
}

/// FAVOR+: softmax attention estimated by random features, linear in the length. There are no probabilities, so none
/// are dropped. Source: Choromanski et al. 2021, section 2 (arXiv 2009.14794). Differs: a causal query's features are
/// stabilised by the keys up to its own place, so that nothing of the future reaches it.
struct PerformerAttention {
  static constexpr const char* kind = "performer";
  int64_t nb_features = 256;
  std::string kernel = "softmax";
  double kernel_epsilon = 1e-6;
  int64_t feature_redraw_interval = 1000;
};
template <class V>
void describe(V& v, PerformerAttention& c) {
  v("nb_features", c.nb_features, "random features of a head", in_range(1, 1 << 20));
  v("kernel", c.kernel,
    "softmax = positive features of the softmax kernel; relu = those of a generalised one; trigonometric = sines and "
    "cosines, unstable, for comparison",
    one_of({"softmax", "relu", "trigonometric"}));
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

}  // namespace cloze
