#pragma once
#include <vector>

#include "core/config/config_rule.h"
#include "models/attention/sizes.h"

namespace cloze {

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
  static constexpr bool bounds_length = false, causal = false;
  std::vector<int64_t> attention_window{512};
  std::vector<int64_t> attention_dilation{1};
  int64_t dilated_heads = 0;
  GlobalTokens global_tokens = GlobalTokens::first;

  static bool takes_unpadded_rows() { return true; }
  void check(const AttentionSizes& sizes, int64_t layers, Constraints& constraints) const {
    check_list("attention_window", attention_window, layers, constraints);
    check_list("attention_dilation", attention_dilation, layers, constraints);
    constraints.forbid(dilated_heads > sizes.num_attention_heads, "model.attention.dilated_heads ", dilated_heads,
                       " is more than model.num_attention_heads ", sizes.num_attention_heads, "; lower it");
  }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;

 private:
  static void check_list(const char* name, const std::vector<int64_t>& list, int64_t layers, Constraints& constraints) {
    const auto count = static_cast<int64_t>(list.size());
    constraints.forbid(count != 1 && count != layers, "model.attention.", name, " has ", count, " values for ", layers,
                       " layers; give one value, or one per layer");
  }
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

}  // namespace cloze
