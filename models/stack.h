#pragma once
// The stack of blocks that every family shares.
#include "models/attention.h"
#include "models/backbone.h"

namespace cloze {

struct StackConfig {
  int64_t hidden_size, num_layers, num_heads, intermediate_size;
  std::string activation;
  double hidden_dropout, attention_dropout;
  double norm_eps;
  bool causal = false;
  AttentionConfig attention{};
  int64_t groups = 0;          ///< groups of layers that share weights; 0: none do
  int64_t inner = 1;           ///< blocks that a layer of a group runs one after the other
  std::string share = "all";   ///< what is shared: all, attention, ffn, none
};

/// One block: attention, then feed-forward, each followed by dropout, residual and norm (post-norm).
/// Source: Vaswani et al. 2017, section 3.1.
struct Block : Layer {
  /// The block of layer `layer`; it takes its attention or its feed-forward half (`share`) from another, where one is given.
  Block(const StackConfig& c, int64_t layer, const Block* from, const std::string& share);
  /// x [B, T, D]; `site` is the first of this block's three dropout sites.
  Tensor forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site) const;
  StackConfig config;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Norm> attention_norm, output_norm;
  std::shared_ptr<Linear> intermediate, output;
};

/// Layers one after the other; a layer is one block, or the blocks of a group.
struct Stack : Layer {
  explicit Stack(const StackConfig& config);
  /// x [B, T, D]; returns [B, T, D]. `drop` carries key and whether training is on; rates are the config's.
  Tensor forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace) const;
  StackConfig config;
  std::vector<std::vector<std::shared_ptr<Block>>> layers;
  bool gradient_checkpointing = false;   ///< each block is run again in the backward pass
};

}  // namespace cloze
