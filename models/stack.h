#pragma once
// The stack of blocks that every family shares.
#include "models/attention.h"
#include "models/backbone.h"

namespace cloze {

/// One block: attention, then feed-forward. Post-norm: each half is followed by dropout, residual and norm; pre-norm: a norm stands
/// before each half, dropout and residual behind it.
/// Source: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, table 1 (arXiv 2002.04745); gates: Shazeer 2020 (arXiv 2002.05202).
struct Block : Layer {
  /// The block of layer `layer`; it takes its attention or its feed-forward half (`share`) from another, where one is given.
  Block(const StackConfig& c, int64_t layer, const Block* from);
  /// x [B, T, D]; `site` is the first of this block's three dropout sites.
  Tensor forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site) const;
  StackConfig config;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Norm> attention_norm, output_norm;
  std::shared_ptr<Linear> intermediate, gate, output;

 private:
  Tensor feed_forward(const Tensor& x) const;   // [B, T, D] to [B, T, F]
};

/// Layers one after the other; a layer is one block, or the blocks of a group.
struct Stack : Layer {
  explicit Stack(const StackConfig& config);
  /// x [B, T, D]; returns [B, T, D]. `drop` carries key and whether training is on; rates are the config's.
  Tensor forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace) const;
  StackConfig config;
  std::vector<std::vector<std::shared_ptr<Block>>> layers;
  std::shared_ptr<Norm> final_norm;      ///< pre-norm only
  bool gradient_checkpointing = false;   ///< each block is run again in the backward pass
};

}  // namespace cloze
