#include <cmath>

#include "core/tensor/plain.h"
#include "models/attention.h"

namespace cloze {

namespace {

/// Attention over slots, each a weighted sum of all places: linear in the length.
/// Source: Wang et al. 2020, equation 7 (arXiv 2006.04768). As in fairseq, places are compressed before the biases of keys and values.
struct LinformerAttentionLayer final : Attention {
  LinformerAttentionLayer(const LinformerAttention& kind, const StackConfig& c)
      : Attention(c.hidden_size),
        heads(c.num_attention_heads),
        qkv(own("qkv", std::make_shared<Linear>(c.hidden_size, 3 * c.hidden_size))),
        compress_key(own_param("compress_key", {c.max_position_embeddings / kind.compressed, c.max_position_embeddings}, Init::weight)),
        compress_value(kind.shared_kv_compressed ? compress_key : own_param("compress_value", {c.max_position_embeddings / kind.compressed, c.max_position_embeddings}, Init::weight)) {}

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto type = x.scalar_type();
    const auto real = context.key_mask.defined() ? x.masked_fill(context.key_mask.logical_not().unsqueeze(-1), 0.0) : x;
    const auto place = at::ones_like(x.select(-1, 0).select(0, 0), at::kLong).cumsum(0) - 1;                         // [T]
    const auto bias = plain::weight(qkv->bias, type).chunk(3);
    const auto parts = linear(real, qkv->weight, Param()).chunk(3, -1);                                                // [B, T, D] each
    const auto slots = [&](const Param& weights, const Tensor& rows, const Tensor& b) { return at::matmul(plain::weight(weights, type).index_select(1, place), rows) + b; };   // [B, k, D]
    const auto split = [&](const Tensor& t) { return t.unflatten(-1, {heads, t.size(-1) / heads}).transpose(1, 2); };  // [B, H, ., C]
    const auto q = split(parts[0] + bias[0]), k = split(slots(compress_key, parts[1], bias[1])), v = split(slots(compress_value, parts[2], bias[2]));
    const auto scores = at::matmul(q, k.transpose(-1, -2)).to(type == at::kDouble ? at::kDouble : at::kFloat) / std::sqrt(static_cast<double>(q.size(-1)));   // [B, H, T, k]
    return join_heads(at::matmul(dropout(at::softmax(scores, -1), drop).to(type), v));
  }

  int64_t heads;
  std::shared_ptr<Linear> qkv;
  Param compress_key, compress_value;   // [slots, places]
};

}  // namespace

std::shared_ptr<Attention> make_linformer_attention(const LinformerAttention& kind, const StackConfig& config) { return std::make_shared<LinformerAttentionLayer>(kind, config); }

}  // namespace cloze
