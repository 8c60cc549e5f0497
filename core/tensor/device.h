#pragma once
// The operators of ops.h for a GPU: LibTorch's products and attention, and between them the kernels of core/device, one
// for what the plain form has a dozen operators for. As in fused.h, gradients of parameters are added into `.grad()`.
// What is not here runs in its plain form.
#include "core/tensor/ops.h"

namespace cloze::device {

/// True if these run for tensors like x: of a GPU whose kernels compile, fp32 or bf16, not under the tracer. The first
/// time that kernels do not compile, a line of the log says why.
bool is_used(const Tensor& x);

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
Tensor linear_self_attention(const Tensor& x, const Param& w, const Param& b, int64_t heads,
                             const AttentionContext& context, const Dropout& drop);
Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop);
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop);
Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance);
Tensor sum_by_distance(const Tensor& x, int64_t reach);
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop);
Tensor take_rows(const Tensor& x, const Tensor& index);
/// x [R, ...] at `index` int64 [N], with zeros where that is negative. `inverse` [R]: where each row is in the result,
/// or negative.
Tensor moved_rows(const Tensor& x, const Tensor& index, const Tensor& inverse);
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, Tensor* correct, TokenDraw* draw = nullptr);

}  // namespace cloze::device
