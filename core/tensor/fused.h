#pragma once
// The operators of ops.h with hand-written backward passes on the kernels, for the CPU in fp32 or bf16.
// Parameters enter the graph as leaves, but their gradients are added straight into `.grad()` (fp32, a view of the flat
// gradient): no dense temporary of a table, no cast, no second addition.
#include "core/tensor/ops.h"

namespace cloze::fused {

Tensor linear(const Tensor& x, const Param& w, const Param& b);
Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation activation,
                         const Dropout& drop = {});
Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table);
Tensor layer_norm(const Tensor& x, const NormParams& norm);
Tensor dropout(const Tensor& x, const Dropout& drop);
MemoryState memory_cell(const Tensor& gates, const Tensor& cell);
Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first = nullptr);
Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first = nullptr);
Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop);
Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop);
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop);
Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features);
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop);
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, int64_t* correct, TokenDraw* draw = nullptr);
Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw);
Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor take_rows(const Tensor& x, const Tensor& index);

}  // namespace cloze::fused
