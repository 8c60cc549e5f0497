#pragma once
// The stack of blocks that every family shares.
#include <optional>

#include "models/attention/attention.h"
#include "models/backbone.h"

namespace cloze {

/// One block: attention, in a decoder attention over a memory, then feed-forward. Post-norm: each part is followed by
/// dropout, residual and norm; pre-norm: a norm stands before each part, dropout and residual behind it. Source:
/// Vaswani et al. 2017, section 3.1; Xiong et al. 2020, table 1 (arXiv 2002.04745); gates: Shazeer 2020 (arXiv
/// 2002.05202).
struct Block : Layer {
  /// The block of layer `layer`; it takes its attention or its feed-forward half (`share`) from another, where one is
  /// given.
  Block(const StackConfig& c, int64_t layer, const Block* from);
  static constexpr uint32_t sites = 6;  ///< places of dropout in a block
  /// x [B, T, D]; `site` is the first of this block's. `cache`, where given, holds keys and values of earlier tokens
  /// and receives those of x. Behind self-attention the block goes on with `places` of the flattened [B T] alone, and
  /// returns [N, D]; undefined: with all.
  Tensor forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site,
                 const Memory* memory, BlockCache* cache, const Tensor& places) const;
  StackConfig config;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<CrossAttention> cross_attention;
  std::shared_ptr<Norm> attention_norm, cross_norm, output_norm;
  std::shared_ptr<Linear> intermediate, gate, output;

 private:
  Tensor feed_forward(const Tensor& x, const Dropout& inside) const;  // [B, T, D] to [B, T, F]
};

/// Buckets of distances (key minus query): small ones each have their own, larger ones share them by their logarithm. A
/// causal stack tells only what lies behind apart, another one both sides. Source: Raffel et al. 2020, section 2.1;
/// Mesh TensorFlow, transformer_layers.py.
class DistanceBuckets {
 public:
  DistanceBuckets(int64_t buckets, int64_t max_distance, bool causal);
  /// int64, as `distance`.
  Tensor operator()(const Tensor& distance) const;

 private:
  int64_t count_, exact_;  // of one side
  bool causal_;
  Tensor begins_;  // int64: the first distance of each bucket behind the exact ones
};

/// Layers one after the other; a layer is one block, or the blocks of a group.
struct Stack : Layer {
  explicit Stack(const StackConfig& config);
  /// x [B, T, D]; returns [B, T, D]. `drop` carries key, the first site and whether training is on; rates are the
  /// config's. `cache`, where given, has an element for each block. `read_positions` int64 [N]: places of the flattened
  /// [B T] that are read; the others come out as zeros, and the last block does for them only what the attention of
  /// those needs.
  Tensor forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace, const Memory* memory = nullptr,
                 std::vector<BlockCache>* cache = nullptr, const Tensor& read_positions = {}) const;
  /// Blocks, those of shared layers counted each time.
  int64_t depth() const;
  StackConfig config;
  std::vector<std::vector<std::shared_ptr<Block>>> layers;
  std::shared_ptr<Norm> final_norm;  ///< pre-norm only
  Param relative_attention_bias;     ///< [buckets, H], where places are a bias of scores
  std::optional<DistanceBuckets> buckets;
  bool gradient_checkpointing = false;  ///< each block is run again in the backward pass
};

}  // namespace cloze
