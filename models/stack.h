#pragma once
// The stack of blocks that every family shares.
#include "models/attention/attention.h"
#include "models/backbone.h"

namespace cloze {

/// The key-value cache of a block, in the state of a decoder; null: none.
struct BlockCache {
  Tensor* self = nullptr;   ///< [B, S, 2 H C], self-attention: of earlier tokens
  Tensor* cross = nullptr;  ///< [B, S', 2 H C], cross-attention: of the encoder's output
};

/// A Transformer block: self-attention, cross-attention in the decoder of an encoder-decoder, then feed-forward.
/// Post-norm: each sublayer is followed by dropout, residual and norm; pre-norm: each sublayer is preceded by the norm
/// and followed by dropout and residual. Source: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, table 1 (arXiv
/// 2002.04745); gated feed-forward: Shazeer 2020 (arXiv 2002.05202).
struct Block : Layer {
  /// The block of layer `layer`; with `from`, it shares that block's attention or feed-forward sublayer, as `share`
  /// says.
  Block(const StackConfig& c, int64_t layer, PositionScheme& positions, const Block* from, Sharing share);
  static constexpr uint32_t sites = 6;  ///< number of dropout sites in a block
  /// x [B, T, D]; `site` is this block's first dropout site. `cache` may hold the keys and values of earlier
  /// tokens, and those of x are appended. With `indices` into the flattened [B T], everything after self-attention is
  /// computed for those tokens only, and the result is [N, D]; undefined: for all tokens.
  Tensor forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site,
                 const EncoderOutput* encoded, const BlockCache& cache, const Tensor& indices) const;
  /// Multiply-adds for one of these rows, of which `outputs` tokens are computed after self-attention; `encoded`:
  /// tokens of the encoder's output.
  double multiply_adds(const RowSizes& row, double outputs, double encoded) const;
  StackConfig config;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<CrossAttention> cross_attention;
  std::shared_ptr<Norm> attention_norm, cross_norm, output_norm;  ///< attention_norm may be null, pre-norm
  std::shared_ptr<Linear> intermediate, gate, output;

 private:
  Tensor gated(const Tensor& x, const Dropout& inside) const;  // [B, T, D] to [B, T, F]
};

/// The input of a stack: ids [B, T], or [1, N] of unpadded rows.
struct StackInput {
  EmbeddingIds ids;
  AttentionContext context{};
  Dropout drop{};
};

/// A stack of layers; a layer is one block, or inner_group_num blocks.
struct Stack : Layer {
  /// `below`: layers of other stacks that its input has passed.
  Stack(const StackConfig& config, const StackParts& parts, int64_t below = 0);
  /// x [B, T, D]; returns [B, T, D]. `drop` carries the key, the first dropout site and whether dropout is active; the
  /// rates are the config's. `state`, if given, is one that has begun. `read_positions` int64 [N]: indices into
  /// the flattened [B T] of the tokens whose hidden states are used; the others are returned as zeros, and the last
  /// block computes nothing for them after self-attention.
  /// With unpadded rows in `context`, x is [1, N, D].
  Tensor forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace,
                 const EncoderOutput* encoded = nullptr, DecoderState* state = nullptr,
                 const Tensor& read_positions = {}) const;
  /// What the stack reads of these inputs, whose padded ids and dropout are given: without padding, if nobody reads its
  /// states and the attention can.
  StackInput input(const Inputs& in, const EmbeddingIds& ids, const Dropout& drop, const Trace* trace) const;
  /// Multiply-adds for one of these rows; `encoded`: tokens of the encoder's output.
  double multiply_adds(const RowSizes& row, double encoded = 0) const;
  /// Makes room in `state` for the caches of all blocks.
  void begin(DecoderState& state) const;
  /// There are blocks, and each has a key-value cache.
  bool has_cache() const;
  /// Number of blocks that run; shared ones count each time.
  int64_t depth() const;
  StackConfig config;
  int64_t top;  ///< the depth of its last layer (Param::depth)
  std::shared_ptr<PositionScheme> positions;
  std::vector<std::vector<std::shared_ptr<Block>>> layers;
  std::shared_ptr<Norm> final_norm;     ///< pre-norm only
  bool gradient_checkpointing = false;  ///< recompute each block in the backward pass
};

}  // namespace cloze
