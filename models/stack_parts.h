#pragma once
// Parts of a backbone that some families have: the config of such a family derives from them, and no other one names
// them. The defaults of a part leave it out.
#include <algorithm>

#include "core/config/config_rule.h"
#include "models/transformer_config.h"

namespace cloze {

/// The parameters that the layers of a group share.
enum class Sharing { all, attention, ffn, none };
constexpr auto choices(Sharing) {
  return std::array{Choice{Sharing::all, "all"}, Choice{Sharing::attention, "attention", "attention only"},
                    Choice{Sharing::ffn, "ffn", "feed-forward layers only"}, Choice{Sharing::none, "none"}};
}

/// Layers that share their weights. Layer i of n belongs to group floor(i groups / n).
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); google-research/albert, modeling.py.
struct LayerSharing {
  int64_t num_hidden_groups = 0;  ///< 0: every layer is a group
  int64_t inner_group_num = 1;
  Sharing share = Sharing::all;

  /// Number of groups of `layers` layers.
  int64_t groups_of(int64_t layers) const {
    return num_hidden_groups > 0 && share != Sharing::none ? std::min(num_hidden_groups, layers) : layers;
  }
};
template <class V>
void describe_sharing(V& v, LayerSharing& c) {
  v("num_hidden_groups", c.num_hidden_groups, "number of layer groups; the layers of a group share their weights",
    in_range(1, limits::layers));
  v("inner_group_num", c.inner_group_num, "consecutive blocks in a layer", in_range(1, 64));
  v("share", c.share, "the weights that the layers of a group share (table 4 of the paper)");
}

/// Attention of a causal stack that is bidirectional within the source, but for its last token.
/// Source: Raffel et al. 2020, section 3.2.1 (arXiv 1910.10683).
struct PrefixAttention {
  bool prefix_lm = false;
};
template <class V>
void describe_prefix(V& v, PrefixAttention& c) {
  v("prefix_lm", c.prefix_lm,
    "prefix LM (Raffel et al. 2020, section 3.2.1): attention is bidirectional within the source except for its last "
    "token, and causal from there on");
}

/// The projection of embeddings to the width of the stack, which every stack with embeddings of another width has.
/// `embedding_size` itself is a size of every backbone: a generator of rtd has the embeddings of its discriminator.
/// Source: Lan et al. 2020, section 3.1 (arXiv 1909.11942); google-research/electra, model/modeling.py.
struct EmbeddingProjection {
  bool always_project_embeddings = false;    ///< even if embedding width and hidden width are equal
  bool xavier_embedding_projection = false;  ///< with initializer truncated_normal it is Xavier (Glorot) uniform
};

/// The parts of a stack.
struct StackParts {
  LayerSharing sharing{};
  PrefixAttention prefix{};
};

/// The rules between the options of every Transformer: widths and heads, positions, attention, parts of the stack.
void check_constraints(const TransformerConfig& model, const StackParts& parts, Constraints& constraints);

}  // namespace cloze
