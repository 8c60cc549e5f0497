#include "core/tensor/ops.h"

#include "core/tensor/plain.h"

namespace cloze {

bool use_fused(const Tensor&) { return false; }
void set_fused(bool) {}

Tensor linear(const Tensor& x, const Param& w, const Param& b) { return plain::linear(x, w, b); }
Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, const std::string& name) {
  return plain::linear_activation(x, w, b, name);
}
Tensor activation(const Tensor& x, const std::string& name) { return plain::activation(x, name); }
Tensor layer_norm(const Tensor& x, const Param& gamma, const Param& beta, double eps) { return plain::layer_norm(x, gamma, beta, eps); }
Tensor dropout(const Tensor& x, const Dropout& drop) { return plain::dropout(x, drop); }
Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                               const Param& gamma, const Param& beta, double eps) {
  return plain::linear_dropout_add_norm(x, w, b, drop, residual, gamma, beta, eps);
}
Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual) {
  return plain::linear_dropout_add(x, w, b, drop, residual);
}
Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context, const Dropout& drop) {
  return plain::self_attention(qkv, bias, heads, context, drop);
}
Tensor embed(const Tensor& ids, const Tensor& types, const Param& word, const Param& position, const Param& type, const Param& gamma,
             const Param& beta, double eps, const Dropout& drop) {
  return plain::embed(ids, types, word, position, type, gamma, beta, eps, drop);
}
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels, int64_t* correct) {
  return plain::token_cross_entropy(hidden, table, bias, labels, correct);
}
Tensor take_rows(const Tensor& x, const Tensor& index) { return plain::take_rows(x, index); }

}  // namespace cloze
